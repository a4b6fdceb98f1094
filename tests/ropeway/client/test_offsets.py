"""Offsets in a file, and at brokers."""

import asyncio

import pytest

from ropeway.client import (
    Message,
    MessageQueue,
    OffsetFileError,
    Producer,
    PullConsumer,
)
from ropeway.client.offsets import FileOffsets
from tests.ropeway.client.scenario import CONSUMER, PRODUCER, eventually, scenario

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
