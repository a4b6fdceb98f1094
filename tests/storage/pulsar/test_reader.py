"""A reader gives each entry once and in order, and no more than are wanted."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import zlib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.commands import (
    CloseConsumer,
    Delivery,
    Flow,
    GetLastMessageId,
    LastMessageId,
    MessageId,
    Seek,
    Subscribe,
    Success,
    encode_command,
)
from ropeway.storage.pulsar.compression import COMPRESSIONS, LARGEST_BYTES
from ropeway.storage.pulsar.entry import Entry, Metadata, Position
from ropeway.storage.pulsar.errors import (
    EntryError,
    NotAllowedError,
    PulsarError,
    PulsarUnavailableError,
    TopicNotFoundError,
)
from ropeway.storage.pulsar.frames import payload_frame
from tests.remoting import looped
from tests.storage.pulsar.broker import TOPIC, FakeBroker, Peer, running
from tests.storage.pulsar.test_entry import made

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.storage.pulsar.reader import Reader, Start

TIMEOUT_S = 60
LEDGER = 4
LONG = b"long" * 100_000


class Reading:
    """A topic of entries on a broker that does what it is told, and its reader."""

    def __init__(self, broker: FakeBroker, client: PulsarClient) -> None:
        self.broker = broker
        self.client = client
        self.sizes = [1] * 20
        """Messages in each entry of the topic."""
        self.came: list[int] = []
        self.lost: list[PulsarError] = []
        self.reader: Reader
        self.long: set[int] = set()
        """Entries whose payload is compressed, and long."""
        self.payloads: list[bytes] = []
        self._next = 0
        self._permits = 0
        self._changed = asyncio.Event()
        broker.answers |= {
            Subscribe: self.subscribe,
            Flow: self.flow,
            CloseConsumer: lambda _, asked: Success(asked.request_id),
        }

    async def open(
        self, start: Start = "earliest", permits: int = 100, **more: Any
    ) -> Reader:
        self.reader = await self.client.reader(
            TOPIC,
            start,
            received=self.receive,
            lost=self.lose,
            permits=permits,
            **more,
        )
        return self.reader

    def receive(self, entry: Entry) -> None:
        self.came.append(entry.position.entry)
        self.payloads.append(bytes(entry.payload))
        self._changed.set()

    def lose(self, error: PulsarError) -> None:
        self.lost.append(error)
        self._changed.set()

    async def until(self, count: int) -> list[int]:
        while len(self.came) < count and not self.lost:
            self._changed.clear()
            await self._changed.wait()
        return self.came

    def subscribe(self, _peer: Peer, asked: Subscribe) -> Success:
        assert asked.start is not None
        # As the real one: it begins with the start.
        self._next = max(0, asked.start.entry)
        self._permits = 0
        return Success(asked.request_id)

    def flow(self, peer: Peer, asked: Flow) -> None:
        self._permits += asked.permits
        while self._permits > 0 and self._next < len(self.sizes):
            self._permits -= self.sizes[self._next]
            peer.transport.write(self.entry(asked.consumer_id, self._next))
            self._next += 1

    def entry(self, consumer_id: int, number: int) -> bytes:
        size = self.sizes[number]
        delivery = Delivery(consumer_id, MessageId(LEDGER, number))
        metadata = Metadata("w", number, 1, num_messages=size if size > 1 else None)
        payload = b"x"
        if number in self.long:
            said = msgspec.structs.replace(
                metadata, compression=2, uncompressed_bytes=len(LONG)
            )
            metadata, payload = said, zlib.compress(LONG, 1)
        frame = payload_frame(encode_command(delivery), metadata.encode(), [payload])
        return b"".join(frame)


@contextlib.asynccontextmanager
async def reading() -> AsyncIterator[Reading]:
    async with running() as broker:
        client = PulsarClient(broker.url, request_timeout_s=TIMEOUT_S)
        try:
            yield Reading(broker, client)
        finally:
            await client.close()


@looped
async def test_all_entries_come_in_order_from_the_earliest():
    async with reading() as one:
        await one.open()
        assert await one.until(20) == list(range(20))
        assert one.broker.of(Subscribe)[0].start == MessageId(-1, -1)


@pytest.mark.parametrize(("inclusive", "first"), [(True, 5), (False, 6)])
@looped
async def test_a_position_is_given_too_or_not(inclusive, first):
    async with reading() as one:
        await one.open(Position(LEDGER, 5), inclusive=inclusive)
        assert await one.until(20 - first) == list(range(first, 20))
        assert one.broker.of(Subscribe)[0].start == MessageId(LEDGER, first)


@looped
async def test_what_the_broker_gives_before_the_start_is_passed_over():
    async with reading() as one:
        usual = one.broker.answers[Subscribe]

        def earlier(peer, asked):
            answer = usual(peer, asked)
            one._next = 2
            return answer

        one.broker.answers[Subscribe] = earlier
        await one.open(Position(LEDGER, 5), permits=1)
        assert await one.until(1) == [5]


@pytest.mark.parametrize("size", [1, 3, 1000])
@looped
async def test_never_more_entries_come_than_are_wanted(size):
    async with reading() as one:
        one.sizes = [size] * 20
        reader = await one.open(permits=7)
        assert await one.until(7) == list(range(7))
        await reader.seek(Position(LEDGER, 7))
        reader.more(2)
        assert await one.until(9) == list(range(9))
        reader.more(3)
        assert await one.until(12) == list(range(12))


@looped
async def test_a_lost_connection_leaves_nothing_out_and_gives_nothing_twice():
    async with reading() as one:
        kills = [6, 13]

        def flow(peer, asked):
            one._permits += asked.permits
            while one._permits > 0 and one._next < len(one.sizes):
                one._permits -= 1
                peer.transport.write(one.entry(asked.consumer_id, one._next))
                one._next += 1
                if kills and one._next > kills[0]:
                    kills.pop(0)
                    peer.transport.close()
                    return

        one.broker.answers[Flow] = flow
        await one.open()
        assert await one.until(20) == list(range(20))
        starts = [asked.start for asked in one.broker.of(Subscribe)]
        assert starts[1:] == [MessageId(LEDGER, 7), MessageId(LEDGER, 14)]
        assert len({asked.subscription for asked in one.broker.of(Subscribe)}) == 3


@looped
async def test_a_consumer_that_the_broker_closes_opens_again():
    async with reading() as one:
        await one.open(permits=5)
        await one.until(5)
        ids = [asked.consumer_id for asked in one.broker.of(Subscribe)]
        one.broker.peers[0].tell(CloseConsumer(ids[0], -1))
        await one.broker.wait(Subscribe, 2)
        one.reader.more(5)
        assert await one.until(10) == list(range(10))


@looped
async def test_the_latest_is_fixed_when_it_is_asked_for():
    async with reading() as one:
        one.broker.answers[GetLastMessageId] = lambda _, asked: LastMessageId(
            MessageId(LEDGER, 9), asked.request_id, MessageId(LEDGER, 9)
        )
        await one.open("latest", permits=0)
        one.broker.peers[0].transport.abort()
        _, second = await one.broker.wait(Subscribe, 2)
        assert second.start == MessageId(LEDGER, 10)
        one.reader.more(5)
        assert await one.until(5) == [10, 11, 12, 13, 14]


@looped
async def test_a_time_is_sought_and_subscribed_to_again():
    async with reading() as one:

        def seek(peer, asked):
            one._next = 8
            peer.tell(CloseConsumer(asked.consumer_id, -1))
            return Success(asked.request_id)

        def subscribe(_peer, asked):
            one._permits = 0
            return Success(asked.request_id)

        one.broker.answers |= {Seek: seek, Subscribe: subscribe}
        await one.open(123_456, permits=2)
        assert await one.until(2) == [8, 9]
        assert [asked.publish_ms for asked in one.broker.of(Seek)] == [123_456]
        first, second = one.broker.of(Subscribe)
        assert first.subscription == second.subscription


@pytest.mark.parametrize(
    ("told", "last"),
    [(MessageId(3, 9), Position(3, 9)), (MessageId(-1, -1), None)],
)
@looped
async def test_the_last_position_is_none_where_there_is_no_entry(told, last):
    async with reading() as one:
        one.broker.answers[GetLastMessageId] = lambda _, asked: LastMessageId(
            told, asked.request_id
        )
        assert await (await one.open()).last_position() == last


@looped
async def test_a_topic_that_is_gone_is_told_once():
    async with reading() as one:
        reader = await one.open(permits=1)
        await one.until(1)
        one.broker.refuse(Subscribe, 11)
        one.broker.peers[0].transport.abort()
        await one.until(2)
        assert [type(error) for error in one.lost] == [TopicNotFoundError]
        for call in (reader.last_position(), reader.seek("earliest")):
            with pytest.raises(TopicNotFoundError):
                await call


@looped
async def test_a_reader_that_may_not_read_is_refused_at_once():
    async with reading() as one:
        one.broker.refuse(Subscribe, 4)
        with pytest.raises(NotAllowedError):
            await one.open()
        assert len(one.broker.of(Subscribe)) == 1


@looped
async def test_a_closed_reader_gives_nothing():
    async with reading() as one:
        reader = await one.open(permits=1)
        await one.until(1)
        await reader.close()
        await reader.close()
        reader.more(5)
        with pytest.raises(PulsarUnavailableError, match="the reader is closed"):
            await reader.last_position()
        assert one.came == [0]
        assert one.lost == []


@looped
async def test_what_is_long_is_inflated_on_a_thread_and_nothing_overtakes_it(
    monkeypatch: pytest.MonkeyPatch,
):
    threads = []
    undo = COMPRESSIONS[2][1]

    def noting(data: memoryview, size_bytes: int) -> memoryview:
        threads.append(threading.current_thread())
        return undo(data, size_bytes)

    monkeypatch.setitem(COMPRESSIONS, 2, ("ZLIB", noting))
    async with reading() as topic:
        topic.long = {1, 2, 5}
        await topic.open()
        assert await topic.until(20) == list(range(20))
        assert [len(one) for one in topic.payloads] == [
            len(LONG) if number in topic.long else 1 for number in range(20)
        ]
    assert len(threads) == 3
    assert threading.main_thread() not in threads


@looped
async def test_what_is_being_inflated_is_not_given_after_a_seek_or_the_end(
    monkeypatch: pytest.MonkeyPatch,
):
    goes_on = threading.Event()
    undo = COMPRESSIONS[2][1]

    def waiting(data: memoryview, size_bytes: int) -> memoryview:
        assert goes_on.wait(TIMEOUT_S)
        return undo(data, size_bytes)

    monkeypatch.setitem(COMPRESSIONS, 2, ("ZLIB", waiting))
    try:
        async with reading() as topic:
            topic.long = {2}
            reader = await topic.open()
            assert await topic.until(2) == [0, 1]
            seeking = asyncio.ensure_future(reader.seek(Position(LEDGER, 10)))
            await seeking
            goes_on.set()
            assert await topic.until(12) == [0, 1, *range(10, 20)]
            goes_on.clear()
            await reader.seek(Position(LEDGER, 2))
            await reader.close()
            goes_on.set()
            inflating = reader._inflating
            if inflating is not None:
                await inflating
            assert topic.came == [0, 1, *range(10, 20)]
    finally:
        goes_on.set()


@looped
async def test_a_bomb_is_an_entry_that_cannot_be_read_and_is_tried_once(
    monkeypatch: pytest.MonkeyPatch,
):
    tried = []
    undo = COMPRESSIONS[2][1]

    def noting(data: memoryview, size_bytes: int) -> memoryview:
        tried.append(size_bytes)
        return undo(data, size_bytes)

    monkeypatch.setitem(COMPRESSIONS, 2, ("ZLIB", noting))
    metadata = Metadata("w", 1, 1, compression=2, uncompressed_bytes=LARGEST_BYTES)
    bomb = zlib.compress(bytes(4 * LARGEST_BYTES))
    entry = made(metadata, bomb)
    assert entry.takes_long
    entry.inflate()
    for _ in range(3):
        with pytest.raises(EntryError, match=r"or more of ZLIB; allowed: 16777216"):
            _ = entry.payload
    assert tried == [LARGEST_BYTES]
    said = msgspec.structs.replace(metadata, uncompressed_bytes=LARGEST_BYTES + 1)
    with pytest.raises(EntryError, match="16777217 bytes of ZLIB; allowed: 0 to"):
        _ = made(said, bomb).payload
    assert tried == [LARGEST_BYTES]
