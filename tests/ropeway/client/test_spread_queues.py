"""Topics that are on two brokers of the source move to one broker, and go back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    admin_groups,
    admin_offsets,
    admin_topics,
)
from ropeway.client.admin_cut_over import PASSED_ON, CutOver
from ropeway.client.admin_finish import Finish, Left
from ropeway.client.admin_mirror_checks import Verified, Verifier
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import Rollback
from ropeway.client.errors import AdminError, ResponseError
from ropeway.client.message import MessageQueue
from ropeway.client.spread_queues import in_order
from ropeway.common.throttle import Throttle
from ropeway.gateway.wire.bodies import TopicConfig
from ropeway.gateway.wire.commands.admin import CreateTopic
from tests.gateway.cli.test_cut_over import two_brokers
from tests.ropeway.client.scenario import PATIENT, PRODUCER, scenario
from tests.ropeway.client.test_admin_cut_over import led_to
from tests.ropeway.client.test_admin_mirrors import copy_all
from tests.ropeway.client.test_admin_rollback import read_all

if TYPE_CHECKING:
    from ropeway.client.admin_mirrors import Pair

__all__ = ["two_brokers"]


def config(read: int, write: int) -> TopicConfig:
    return TopicConfig(topic_name="t", read_queue_nums=read, write_queue_nums=write)


def test_queues_are_numbered_as_producers_number_them():
    brokers = {"b": config(2, 1), "a": config(1, 1), "c-0": config(0, 2)}
    assert in_order("t", brokers) == [
        MessageQueue("t", "a", 0),
        MessageQueue("t", "b", 0),
        MessageQueue("t", "b", 1),
        MessageQueue("t", "c-0", 0),
        MessageQueue("t", "c-0", 1),
    ]


QUEUES = {"broker-0": 1, "broker-1": 2}
"""Of the topic at the source."""


async def spread(admin: Admin, topic: str) -> None:
    for broker, queues in QUEUES.items():
        await admin_topics.create_on(admin, topic, broker, queues)


async def to_each(producer: Producer, topic: str, body: bytes) -> list[tuple[int, int]]:
    """Send to each queue; the queue ids and offsets that it was told."""
    told = []
    for queue in sorted(await producer.queues(topic)):
        sent = await producer.send(Message(topic, body, keys=("all",)), queue=queue)
        assert sent.queue == queue
        told.append((queue.queue_id, sent.queue_offset))
    return told


async def bodies(admin: Admin, queue: MessageQueue) -> list[bytes]:
    found = await read_all(admin, queue.topic, queue.broker_name)
    return [body for (at, _), body in sorted(found.items()) if at == queue.queue_id]


async def both(source: Admin, ours: Admin, pairs: list[Pair]) -> list[list[bytes]]:
    """What is in each queue, the same at both."""
    found = [await bodies(source, pair.source) for pair in pairs]
    assert [await bodies(ours, pair.target) for pair in pairs] == found
    return found


@pytest.mark.slow
@scenario
async def test_a_topic_on_two_brokers_moves_and_goes_back(two_brokers, topic):
    where, group = two_brokers.name_server, f"g-{topic}"
    with led_to(where) as here:
        async with (
            Admin(where, config=PATIENT) as source,
            Admin(here.name_server, config=PATIENT) as ours,
            Producer(where, f"p-{topic}", config=PRODUCER) as early,
            Producer(here.name_server, f"p-{topic}", config=PRODUCER) as producer,
        ):
            await spread(source, topic)
            for admin in (source, ours):
                await admin_groups.create(admin, group, {})
            assert await to_each(early, topic, b"early") == [(0, 0), (0, 0), (1, 0)]
            mirror = Mirror(source, ours)
            pairs = await mirror.prepare(topic)
            assert [pair.source for pair in pairs] == [
                MessageQueue(topic, "broker-0", 0),
                MessageQueue(topic, "broker-1", 0),
                MessageQueue(topic, "broker-1", 1),
            ]
            assert [pair.target.queue_id for pair in pairs] == [0, 1, 2]
            await copy_all(mirror, pairs)
            await admin_offsets.place(source, group, {pairs[2].source: 1})
            # Producers find the queues here that they had, and the source stores.
            await admin_topics.lead_writes(ours, topic, PASSED_ON)
            assert await to_each(producer, topic, b"on") == [(0, 1), (1, 1), (2, 1)]
            job = CutOver(source, ours, mirror, 0)
            assert (await job.move([topic], [group], lambda _: None)).left == 0
            assert await both(source, ours, pairs) == [[b"early", b"on"]] * 3
            assert await admin_offsets.committed(ours, group, pairs[2].target) == 1
            verifier = Verifier(source, ours, Throttle(None, lambda: 0.0), 0)
            for pair in pairs:
                found = await verifier.verify(pair, lambda _: None)
                assert found == Verified(2, 0, 0, 0, None, None)
            assert await to_each(producer, topic, b"here") == [(0, 2), (1, 2), (2, 2)]
            # What comes late to a broker comes to its queue here.
            finish = Finish(source, ours)
            await admin_topics.update(source, topic, perm=6)
            late = Message(topic, b"late")
            async with Producer(where, f"q-{topic}", config=PRODUCER) as other:
                await other.send(late, queue=pairs[1].source)
            assert await finish.look(topic) == Left(late=1)
            done = await Rollback(source, ours, mirror, 0).roll_back(
                [topic], [group], lambda _: None
            )
            assert done.sent == {topic: 4}
            assert [(one.pair, one.here, one.at_source) for one in done.placed] == [
                (pairs[2], 1, 1)
            ]
            first = [b"early", b"on"]
            assert [await bodies(source, pair.source) for pair in pairs] == [
                [*first, b"here"],
                [*first, b"late", b"here", b"late"],
                [*first, b"here"],
            ]


async def send_on(producer: Producer, queue: MessageQueue) -> None:
    """Send until that is refused: a node asks the source for routes once a second."""
    while True:
        await producer.send(Message(queue.topic, b"x"), queue=queue)


@pytest.mark.slow
@scenario
async def test_what_is_not_whole_or_not_the_same_there_is_refused(two_brokers, topic):
    where = two_brokers.name_server
    with led_to(where) as here:
        async with (
            Admin(where, config=PATIENT) as source,
            Admin(here.name_server, config=PATIENT) as ours,
            Producer(here.name_server, f"p-{topic}", config=PRODUCER) as producer,
        ):
            await spread(source, topic)
            mirror = Mirror(source, ours)
            await mirror.prepare(topic)
            await admin_topics.lead_writes(ours, topic, PASSED_ON)
            # As long as a broker is away, nobody knows which queue is which.
            await admin_topics.delete_from(source, topic, "broker-0")
            with pytest.raises(AdminError, match="3 queues at the target and 2"):
                await mirror.pairs(topic)
            queue = max(await producer.queues(topic))
            with pytest.raises(ResponseError, match="and 3 are mirrored; is a broker"):
                await send_on(producer, queue)
            # Producers number queues to write to, consumers those to read.
            other = f"{topic}-other"
            for broker in QUEUES:
                header = CreateTopic(
                    topic=other,
                    default_topic="TBW102",
                    read_queue_nums=2,
                    write_queue_nums=1,
                    perm=6,
                )
                await source.ask_broker(broker, header)
            with pytest.raises(AdminError, match="is not the same on brokers broker-0"):
                await mirror.prepare(other)
