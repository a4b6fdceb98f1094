"""Ropeway's own Pulsar client on a real Pulsar: order, fencing, and every fault."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

import pulsar as native
import pytest

from ropeway.storage.pulsar.commands import Access
from ropeway.storage.pulsar.entry import Position
from ropeway.storage.pulsar.errors import FencedError, TopicNotFoundError
from ropeway.storage.pulsar.send_entry import EntryMetadata
from tests.system.pulsar_client import (
    Writer,
    client_of,
    numbers,
    on_uvloop,
    read_all,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.system.pulsar import Pulsar

pytestmark = [pytest.mark.jvm, pytest.mark.server]
names = itertools.count(1)


@pytest.fixture
def namespace(each_pulsar: Pulsar) -> str:
    """A namespace that no other test uses, which keeps all and drops repeats."""
    name = f"public/client-{next(names)}"
    each_pulsar.make_namespace(name)
    return name


@pytest.fixture
def topic(namespace: str) -> str:
    return f"persistent://{namespace}/topic"


@on_uvloop()
async def test_what_was_sent_is_read_with_its_position_and_index(each_pulsar, topic):
    async with client_of(each_pulsar) as client:
        producer = await client.producer(topic, "writer", lost=pytest.fail)
        assert (producer.last_sequence_id, producer.topic_epoch) == (-1, 0)
        stored: list[Position | None] = []
        for number in (9, 19, 29):
            producer.send(
                [b"head ", bytearray(b"tail")],
                number,
                lambda where, _: stored.append(where),
                EntryMetadata(
                    1_700_000_000_000,
                    properties=[("tag", "A"), ("keys", "k1 k2")],
                    partition_key="k1",
                    event_ms=5,
                ),
                num_messages=10,
            )
        await producer.confirm()
        entries = await read_all(client, topic)
        assert [entry.position for entry in entries] == stored
        assert [entry.index for entry in entries] == [9, 19, 29]
        assert [entry.sequence_id for entry in entries] == [9, 19, 29]
        first = entries[0]
        assert bytes(first.payload) == b"head tail"
        assert first.properties == {"tag": "A", "keys": "k1 k2"}
        assert (first.partition_key, first.event_ms) == ("k1", 5)
        assert first.publish_ms == 1_700_000_000_000
        assert first.broker_ms is not None


@on_uvloop()
async def test_native_clients_read_what_we_send_and_we_read_what_they_send(
    each_pulsar, topic
):
    theirs = native.Client(
        each_pulsar.service_url, logger=native.ConsoleLogger(native.LoggerLevel.Error)
    )
    try:
        async with client_of(each_pulsar) as client:
            ours = await client.producer(
                topic, "ours", access=Access.SHARED, lost=pytest.fail
            )
            properties = [("a", "1")]
            ours.send(
                [b"from us"],
                0,
                lambda *_: None,
                EntryMetadata(7, properties, "key", 8),
            )
            await ours.confirm()
            reader = theirs.create_reader(topic, native.MessageId.earliest)
            message = reader.read_next(60_000)
            assert message.data() == b"from us"
            assert message.properties() == {"a": "1"}
            assert message.partition_key() == "key"
            assert (message.publish_timestamp(), message.event_timestamp()) == (7, 8)
            for kind in ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"):
                producer = theirs.create_producer(
                    topic,
                    compression_type=getattr(native.CompressionType, kind),
                    batching_enabled=True,
                    batching_max_publish_delay_ms=1000,
                )
                for number in range(3):
                    producer.send_async(
                        b"%d" % number, lambda *_: None, partition_key=kind
                    )
                producer.flush()
                producer.close()
            entries = await read_all(client, topic)
            assert [entry.num_messages for entry in entries] == [1, 3, 3, 3, 3, 3]
            assert entries[-1].index == 15
            for entry in entries[1:]:
                payloads = [bytes(payload) for _, payload in entry.messages()]
                assert payloads == [b"0", b"1", b"2"]
    finally:
        await asyncio.to_thread(theirs.close)


@on_uvloop()
async def test_a_second_producer_fences_the_first_for_good(each_pulsar, topic):
    async with client_of(each_pulsar) as client, client_of(each_pulsar) as other:
        first = await Writer.open(client, topic)
        first.send(10)
        await first.settled()
        second = await Writer.open(other, topic)
        second.next = 10
        assert second.term == first.term + 1
        assert (first.producer.topic_epoch, second.producer.topic_epoch) == (0, 1)
        with pytest.raises(FencedError):
            await first.producer.confirm()
        first.send(5)
        second.send(3)
        await asyncio.gather(first.settled(), second.settled())
        await asyncio.sleep(0)
        assert [type(error) for error in first.lost] == [FencedError]
        await second.producer.confirm()
        assert numbers(await read_all(client, topic)) == list(range(13))


@on_uvloop()
async def test_a_fenced_producer_that_only_sends_finds_out_too(each_pulsar, topic):
    async with client_of(each_pulsar) as client, client_of(each_pulsar) as other:
        first = await Writer.open(client, topic)
        second = await Writer.open(other, topic)
        first.send(3)
        await first.settled()
        assert [type(error) for error in first.errors] == [FencedError] * 3
        second.send(2)
        await second.settled()
        # It was put out for a moment while the first asked to come back.
        assert second.lost == []
        assert numbers(await read_all(client, topic)) == [0, 1]


@on_uvloop()
async def test_take_overs_under_a_flood_leave_one_contiguous_log(each_pulsar, topic):
    async with client_of(each_pulsar) as one, client_of(each_pulsar) as other:
        clients = itertools.cycle([one, other])
        acknowledged: set[int] = set()
        writer = await Writer.take_over(next(clients), topic)
        for _ in range(8):
            flooding = asyncio.create_task(writer.flood(asyncio.Event()))
            await writer.until(300)
            taker = await Writer.take_over(next(clients), topic)
            # A broker may let the old one in again: nothing of it is stored any more.
            taker.send(50)
            await asyncio.gather(flooding, taker.settled())
            assert [type(error) for error in writer.lost] == [FencedError]
            acknowledged |= writer.acknowledged.keys()
            assert max(writer.acknowledged) < taker.next - 50
            writer = taker
        await writer.settled()
        stored = numbers(await read_all(one, topic))
        assert stored == list(range(len(stored)))
        assert acknowledged | writer.acknowledged.keys() <= set(stored)


@on_uvloop()
async def test_unloads_under_a_flood_lose_double_and_reorder_nothing(
    each_pulsar, namespace, topic
):
    async with client_of(each_pulsar) as client:
        writer = await Writer.open(client, topic)
        stop = asyncio.Event()
        flooding = asyncio.create_task(writer.flood(stop))
        followed: list[int] = []
        await client.reader(
            topic,
            "earliest",
            received=lambda entry: followed.append(int(bytes(entry.payload))),
            lost=pytest.fail,
            permits=1 << 20,
        )
        for _ in range(4):
            await writer.until(len(writer.acknowledged) + 300)
            await asyncio.to_thread(
                each_pulsar.admin, "PUT", f"persistent/{namespace}/topic/unload"
            )
        stop.set()
        await flooding
        await writer.settled()
        assert (writer.lost, writer.errors) == ([], [])
        assert numbers(await read_all(client, topic)) == list(range(writer.next))
        await until(lambda: len(followed) >= writer.next)
        assert followed == list(range(writer.next))


@on_uvloop()
async def test_a_topic_deleted_behind_our_back_is_a_loss_and_stays_empty(
    each_pulsar, namespace, topic
):
    async with client_of(each_pulsar) as client:
        writer = await Writer.open(client, topic)
        writer.send(10)
        await writer.settled()
        await asyncio.to_thread(
            each_pulsar.admin, "DELETE", f"persistent/{namespace}/topic?force=true"
        )
        await until(lambda: writer.lost)
        assert isinstance(writer.lost[0], TopicNotFoundError)
        writer.send(1)
        await asyncio.sleep(0)
        again = await Writer.open(client, topic)
        assert again.producer.last_sequence_id == -1
        assert await read_all(client, topic) == []


@on_uvloop()
async def test_a_topic_that_may_not_be_made_is_not_found(each_pulsar, namespace):
    override = {"allowAutoTopicCreation": False}
    path = f"namespaces/{namespace}/autoTopicCreation"
    await asyncio.to_thread(each_pulsar.admin, "POST", path, override)
    async with client_of(each_pulsar) as client:
        topic = f"persistent://{namespace}/none"
        with pytest.raises(TopicNotFoundError):
            await client.producer(topic, "writer", lost=pytest.fail)
        with pytest.raises(TopicNotFoundError):
            await read_all(client, topic)


@pytest.mark.parametrize(
    ("start", "inclusive", "first"),
    [
        (lambda at, _: at[40], True, 40),
        (lambda at, _: at[40], False, 41),
        (lambda at, _: at[99], True, 99),
        (lambda at, _: at[99], False, 100),
        (lambda _, __: Position(0, 0), True, 0),
        (lambda _, middle_ms: middle_ms, True, 50),
        (lambda _, __: 1, True, 0),
        (lambda _, __: int(time.time() * 1000) + 10**6, True, 100),
        (lambda _, __: "latest", True, 100),
    ],
)
@on_uvloop()
async def test_a_reader_begins_exactly_where_it_is_told_to(
    each_pulsar, topic, start: Callable, inclusive, first
):
    async with client_of(each_pulsar) as client:
        writer = await Writer.open(client, topic)
        writer.send(50)
        await writer.settled()
        await asyncio.sleep(0.01)
        middle_ms = int(time.time() * 1000)
        await asyncio.sleep(0.01)
        writer.send(50)
        await writer.settled()
        positions = [writer.acknowledged[number] for number in range(100)]
        came: list[int] = []
        reader = await client.reader(
            topic,
            start(positions, middle_ms),
            inclusive=inclusive,
            received=lambda entry: came.append(int(bytes(entry.payload))),
            lost=pytest.fail,
            permits=1000,
        )
        assert await reader.last_position() == positions[99]
        writer.send(1)
        await writer.settled()
        await until(lambda: came[-1:] == [100])
        assert came == list(range(first, 101))


@on_uvloop()
async def test_a_compacted_topic_gives_the_last_of_each_key(
    each_pulsar, namespace, topic
):
    async with client_of(each_pulsar) as client:
        producer = await client.producer(topic, "writer", lost=pytest.fail)
        for number in range(100):
            producer.send(
                [b"%d" % number],
                number,
                lambda *_: None,
                EntryMetadata(1, partition_key=f"key-{number % 10}"),
            )
        await producer.confirm()
        path = f"persistent/{namespace}/topic/compaction"
        await asyncio.to_thread(each_pulsar.admin, "PUT", path)
        while True:
            state = await asyncio.to_thread(each_pulsar.admin, "GET", path)
            if state["status"] != "RUNNING":
                break
            await asyncio.sleep(0.1)
        assert state["status"] == "SUCCESS"
        entries = await read_all(client, topic, compacted=True)
        assert numbers(entries) == list(range(90, 100))
        assert numbers(await read_all(client, topic)) == list(range(100))


@on_uvloop(280)
async def test_a_killed_pulsar_that_comes_back_has_all_once_and_in_order(mortal_pulsar):
    await asyncio.to_thread(mortal_pulsar.make_namespace, "public/killed-twice")
    topic = "persistent://public/killed-twice/topic"
    async with client_of(mortal_pulsar) as client:
        writer = await Writer.open(client, topic)
        stop = asyncio.Event()
        flooding = asyncio.create_task(writer.flood(stop))
        for _ in range(2):
            await writer.until(len(writer.acknowledged) + 1000)
            mortal_pulsar.kill()
            await asyncio.to_thread(mortal_pulsar.start)
        stop.set()
        await flooding
        await writer.settled()
        assert (writer.lost, writer.errors) == ([], [])
        assert len(writer.acknowledged) == writer.next
        assert numbers(await read_all(client, topic)) == list(range(writer.next))
