"""Offsets in a file, and at brokers."""

import asyncio
import time

import pytest

from ropeway.client import (
    ConsumerConfig,
    Message,
    MessageQueue,
    OffsetFileError,
    Producer,
    PullConsumer,
)
from ropeway.client.instance import Instance
from ropeway.client.offsets import BrokerOffsets, FileOffsets
from ropeway.client.tasks import cancel
from ropeway.gateway.wire.codes import RequestCode
from tests.ropeway.client.fake_server import Answer, FakeServer, Request
from tests.ropeway.client.scenario import (
    CONSUMER,
    PRODUCER,
    eventually,
    scenario,
    until,
)

QUEUES = [MessageQueue("t", "b", number) for number in range(2)]


def test_a_file_gives_offsets_back(tmp_path):
    path = tmp_path / "deep" / "group.json"
    offsets = FileOffsets(path)
    offsets.update(QUEUES[0], 7)
    offsets.update(QUEUES[1], 9)
    offsets.forget(QUEUES[1])
    asyncio.run(offsets.store_all())
    again = FileOffsets(path)
    assert [asyncio.run(again.read(queue)) for queue in QUEUES] == [7, 9]
    assert asyncio.run(again.read(MessageQueue("t", "b", 2))) is None


def test_a_file_is_written_only_when_something_changed(tmp_path):
    path = tmp_path / "group.json"
    offsets = FileOffsets(path)
    offsets.update(QUEUES[0], 7)
    asyncio.run(offsets.store(QUEUES[0]))
    path.unlink()
    asyncio.run(offsets.store_all())
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"version":1}'])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "group.json"
    path.write_bytes(content)
    with pytest.raises(OffsetFileError, match=r"group\.json"):
        FileOffsets(path)


def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "group.json"
    path.write_bytes(b'{"version":2,"offsets":[]}')
    with pytest.raises(OffsetFileError, match="version 2; allowed: 1"):
        FileOffsets(path)


@scenario
async def test_a_broker_gives_offsets_back(name_server, topic, group):
    async with Producer(name_server, "senders", config=PRODUCER) as producer:
        sent = [
            await producer.send(Message(topic, body, sharding_key="k"))
            for body in (b"one", b"two")
        ]
    queue = sent[0].queue
    async with PullConsumer(name_server, group, config=CONSUMER) as consumer:
        # A broker may index a message a little after its acknowledgement.
        await eventually(lambda: consumer.end_offset(queue), lambda end: end == 2)
        await consumer.assign([queue])
        await consumer.seek(queue, 1)
        await consumer.commit()
        assert await consumer.committed(queue) == 1


@scenario
async def test_an_older_offset_is_answered_before_a_newer_one_is_sent():
    queue, came = MessageQueue("t", "b", 0), []

    def first_is_lost(request: Request) -> Answer | None:
        came.append((time.monotonic(), int(request.fields["commitOffset"])))
        return None if len(came) == 1 else Answer()

    config = ConsumerConfig(request_timeout_s=0.5)
    async with FakeServer() as server:
        server.behaviours[RequestCode.UPDATE_CONSUMER_OFFSET] = first_is_lost
        instance = Instance(server.address, config)
        instance.start()
        await instance.routes.get("t")
        offsets = BrokerOffsets(instance, "g")
        offsets.update(queue, 1)
        storing = asyncio.create_task(offsets.store_all())
        await until(lambda: came)
        # As the client does that stores what it has by the clock, when it is closed.
        await cancel(storing)
        offsets.update(queue, 5)
        await offsets.store_all()
        await instance.close()
    (first_s, one), (second_s, five) = came
    assert (one, five) == (1, 5)
    assert second_s - first_s > 0.4
