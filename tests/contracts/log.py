"""What every log must do. A backend's test subclasses `LogContract`, one fixture."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import (
    MAX_LOOKED_BYTES,
    Filter,
    LogError,
    LogLimitError,
    LogUnavailableError,
    NoSuchPartitionError,
    Record,
)
from tests.contracts.waiting import WaitingContract

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ropeway.storage.api import Chunk, Log, Partition

TOPIC = "orders"


def record(text: str, tag_hash: int = 0, keys: Sequence[str] = ()) -> Record:
    """A record that begins with its own size, as stored messages do."""
    body = text.encode()
    return Record(struct.pack(">i", 4 + len(body)) + body, tag_hash, keys)


def texts(chunk: Chunk) -> list[str]:
    """The records of a chunk, taken apart by their own sizes."""
    found = []
    for piece in chunk.data:
        at = 0
        while at < len(piece):
            (size,) = struct.unpack_from(">i", piece, at)
            found.append(bytes(piece[at + 4 : at + size]).decode())
            at += size
    assert len(found) == chunk.records
    return found


def begin(
    partition: Partition, *records: Record, store_ms: int = 1000
) -> asyncio.Future[int]:
    """Append, and answer with a future of what `done` is told."""
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    inside = True

    def done(offset: int, error: LogError | None) -> None:
        assert not inside, "called from inside append"
        assert not future.done(), "called twice"
        if error is None:
            future.set_result(offset)
        else:
            future.set_exception(error)

    partition.append(records, store_ms, done)
    inside = False
    return future


async def opened(log: Log, number: int, topic: str = TOPIC) -> Partition:
    """A partition that is open, on a network or not."""
    partition = log.partition(topic, number)
    await log.ready(topic)
    return partition


async def read_all(
    partition: Partition, offset: int = 0, wanted: Filter | None = None
) -> list[str]:
    """Everything from an offset on, in as many reads as it takes."""
    found: list[str] = []
    while offset < partition.end:
        chunk = await partition.read(offset, 32, 1 << 20, wanted)
        assert chunk.next_offset > offset, "a read must move on"
        found += texts(chunk)
        offset = chunk.next_offset
    return found


class LogContract(WaitingContract):
    """Laws of `storage.api.Log`. The fixture `open_log` opens the same log again."""

    @pytest.fixture
    def open_log(self) -> Callable[[], Awaitable[Log]]:
        """A function that opens the log; what an earlier one stored is there."""
        raise NotImplementedError

    def run(self, test: Callable[[Log], Awaitable[None]], open_log: Opener) -> None:
        """Run a test on a log that has one topic of two partitions."""

        async def main() -> None:
            async with contextlib.aclosing(Held(await open_log())) as held:
                await held.log.create(TOPIC, [0, 1])
                for number in (0, 1):
                    await opened(held.log, number)
                await test(held.log)

        asyncio.run(main())

    def test_offsets_count_records_from_zero(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            assert (partition.first, partition.end, partition.next_offset) == (0, 0, 0)
            first = begin(partition, record("a"))
            second = begin(partition, record("b"), record("c"))
            assert (partition.end, partition.next_offset) == (0, 3)
            assert (await first, await second) == (0, 1)
            assert (partition.first, partition.end, partition.next_offset) == (0, 3, 3)

        self.run(test, open_log)

    def test_records_come_back_in_the_order_of_the_calls(
        self, open_log: Opener
    ) -> None:
        async def test(log: Log) -> None:
            for number in range(2):
                partition = log.partition(TOPIC, number)
                await asyncio.gather(
                    *[begin(partition, record(f"{number}.{i}")) for i in range(50)]
                )
            for number in range(2):
                found = await read_all(log.partition(TOPIC, number))
                assert found == [f"{number}.{i}" for i in range(50)]

        self.run(test, open_log)

    def test_done_is_called_in_the_order_of_the_calls(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            order: list[int] = []
            for i in range(20):
                future = begin(partition, record(str(i)))
                future.add_done_callback(lambda done: order.append(done.result()))
            await future
            await asyncio.sleep(0)
            assert order == list(range(20))

        self.run(test, open_log)

    def test_a_restart_keeps_topics_records_and_offsets(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            await begin(log.partition(TOPIC, 0), record("a"), record("b"))
            await log.close()
            again = await open_log()
            assert again.topics() == {TOPIC: frozenset({0, 1})}
            partition = await opened(again, 0)
            assert (partition.end, partition.next_offset, again.misfits) == (2, 2, 0)
            assert await begin(partition, record("c")) == 2
            assert await read_all(partition) == ["a", "b", "c"]
            await again.close()

        self.run(test, open_log)

    def test_reads_obey_their_limits(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            await begin(partition, *[record(c * 96) for c in "abcdef"])
            for count, size, expected in [
                (1, 1 << 20, "a"),
                (3, 1 << 20, "abc"),
                (99, 1 << 20, "abcdef"),
                (99, 0, "a"),  # the first one comes always
                (99, 200, "ab"),
                (99, 299, "ab"),
                (99, 300, "abc"),
            ]:
                chunk = await partition.read(0, count, size)
                assert [text[0] for text in texts(chunk)] == list(expected)
                assert chunk.next_offset == len(expected)
                assert partition.read_now(0, count, size) in (chunk, None)

        self.run(test, open_log)

    def test_reading_at_or_past_the_end_finds_nothing(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            await begin(partition, record("a"))
            for offset in (1, 2, 1000):
                chunk = await partition.read(offset, 32, 1 << 20)
                assert (chunk.records, chunk.next_offset) == (0, offset)
            assert (await partition.read(-5, 32, 1 << 20)).records == 1

        self.run(test, open_log)

    def test_a_tag_filter_reads_only_those_tags(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            tags = [3, -7, 3, 0, 2**31 - 1, -(2**31), 3]
            await begin(partition, *[record(str(i), t) for i, t in enumerate(tags)])
            for wanted in ({3}, {-7, 0}, {2**31 - 1, -(2**31)}, {99}, set[int]()):
                found = await read_all(partition, 0, Filter(tag_hashes=wanted))
                assert found == [str(i) for i, t in enumerate(tags) if t in wanted]

        self.run(test, open_log)

    def test_accept_is_asked_for_what_the_tags_let_through(
        self, open_log: Opener
    ) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            await begin(partition, *[record(f"{i}", i % 2) for i in range(40)])
            asked: list[str] = []

            def accept(data: bytes | memoryview) -> bool:
                asked.append(bytes(data[4:]).decode())
                return int(asked[-1]) % 3 == 0

            found = await read_all(partition, 0, Filter(tag_hashes={1}, accept=accept))
            assert found == [str(i) for i in range(40) if i % 2 and i % 3 == 0]
            assert all(int(text) % 2 for text in asked)

        self.run(test, open_log)

    def test_a_filtered_read_fills_up_to_its_count(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            await begin(partition, *[record(f"{i:02}") for i in range(40)])
            wanted = Filter(accept=lambda data: int(bytes(data[4:])) % 2 == 0)
            chunk = await partition.read(0, 5, 1 << 20, wanted)
            assert texts(chunk) == ["00", "02", "04", "06", "08"]
            chunk = await partition.read(chunk.next_offset, 99, 13, wanted)
            assert texts(chunk) == ["10", "12"]

        self.run(test, open_log)

    def test_a_filtered_read_looks_at_so_much_and_moves_on(
        self, open_log: Opener
    ) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            await begin(partition, *[record(f"{i:02}") for i in range(20)])
            wanted = Filter(accept=lambda data: bytes(data[4:]) == b"06", looks=7)
            for offset, found in ((0, ["06"]), (7, [])):
                chunk = await partition.read(offset, 32, 1 << 20, wanted)
                assert (texts(chunk), chunk.next_offset) == (found, offset + 7)
            end = partition.end
            for _ in range(16):
                await begin(partition, record("x" * (MAX_LOOKED_BYTES // 10)))
            wanted = Filter(accept=lambda data: len(data) < MAX_LOOKED_BYTES // 10)
            chunk = await partition.read(end, 2, 1 << 22, wanted)
            assert chunk.records == 0
            assert end < chunk.next_offset < partition.end

        self.run(test, open_log)

    def test_watchers_hear_of_growth_until_they_leave(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            ends: list[int] = []

            def grown() -> None:
                ends.append(partition.end)

            partition.watch(grown)
            partition.watch(grown)
            await asyncio.gather(*[begin(partition, record("a")) for _ in range(3)])
            await asyncio.sleep(0)
            assert ends[-1] == 3
            assert len(ends) <= 3
            heard = len(ends)
            await begin(log.partition(TOPIC, 1), record("b"))
            partition.unwatch(grown)
            partition.unwatch(grown)
            await begin(partition, record("c"))
            assert len(ends) == heard

        self.run(test, open_log)

    def test_offsets_are_found_by_time(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            assert await partition.offset_at(5) == 0
            for store_ms in (100, 200, 200, 300):
                await begin(partition, record("a"), store_ms=store_ms)
            lower = [await partition.offset_at(t) for t in (0, 100, 101, 200, 201, 301)]
            assert lower == [0, 0, 1, 1, 3, 4]
            upper = [
                await partition.offset_at(t, upper=True)
                for t in (0, 100, 199, 200, 999)
            ]
            assert upper == [0, 0, 0, 2, 3]
            times = [await partition.store_time(offset) for offset in (-1, 0, 2, 3, 4)]
            assert times == [None, 100, 200, 300, None]

        self.run(test, open_log)

    def test_keys_find_records_newest_first(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            await log.create("other", [0])
            other = await opened(log, 0, "other")
            await begin(other, record("x", 0, ["k"]))
            for i, number in enumerate([0, 1, 0]):
                partition = log.partition(TOPIC, number)
                keys = ["k", f"only-{i}"]
                await begin(partition, record(str(i), 0, keys), store_ms=100 * i)

            async def query(key: str, begin_ms: int, end_ms: int, n: int) -> list[str]:
                found = await log.query(TOPIC, key, begin_ms, end_ms, n)
                return [one.data[4:].decode() for one in found]

            assert await query("k", 0, 999, 10) == ["2", "1", "0"]
            assert await query("k", 0, 999, 2) == ["2", "1"]
            assert await query("k", 100, 199, 10) == ["1"]
            assert await query("k", 100, 200, 10) == ["2", "1"]
            assert await query("only-0", 0, 999, 10) == ["0"]
            assert await query("absent", 0, 999, 10) == []

        self.run(test, open_log)

    def test_a_deleted_topic_is_gone_and_starts_anew(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            old = log.partition(TOPIC, 0)
            await begin(old, record("a", 0, ["k"]))
            await log.delete(TOPIC)
            await log.delete(TOPIC)
            assert log.topics() == {}
            with pytest.raises(NoSuchPartitionError):
                log.partition(TOPIC, 0)
            with pytest.raises(NoSuchPartitionError):
                begin(old, record("b"))
            with pytest.raises(NoSuchPartitionError):
                old.read_now(0, 1, 1)
            await log.create(TOPIC, [0])
            new = await opened(log, 0)
            assert (new.first, new.end) == (0, 0)
            assert await begin(new, record("c")) == 0
            assert await read_all(new) == ["c"]
            assert await log.query(TOPIC, "k", 0, 9999, 9) == []

        self.run(test, open_log)

    def test_partitions_are_known_by_their_numbers(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            await log.create(TOPIC, [1, 1023])
            dense = log.numbering == "dense"
            numbers = range(1024) if dense else (0, 1, 1023)
            assert log.topics() == {TOPIC: frozenset(numbers)}
            assert log.partition(TOPIC, 1023) is log.partition(TOPIC, 1023)
            await log.create("one", [0])
            with pytest.raises(NoSuchPartitionError, match="2"):
                log.partition("one", 2)
            for number in (-1, 1024):
                with pytest.raises(LogLimitError, match=str(number)):
                    await log.create(TOPIC, [number])

        self.run(test, open_log)

    def test_machines_are_told_of_what_was_asked_for_if_of_any(
        self, open_log: Opener
    ) -> None:
        async def test(log: Log) -> None:
            await log.create(TOPIC, [0, 1, 2])
            found = await log.hosts(TOPIC, [0, 2])
            # All of a log that is spread over machines, or none.
            assert found.keys() in (set(), {0, 2})
            assert all(found.values())

        self.run(test, open_log)

    def test_a_closed_log_refuses(self, open_log: Opener) -> None:
        async def test(log: Log) -> None:
            partition = log.partition(TOPIC, 0)
            future = begin(partition, record("a"))
            await log.close()
            await log.close()
            assert await future == 0
            with pytest.raises(LogUnavailableError, match="closed"):
                begin(partition, record("b"))
            with pytest.raises(LogUnavailableError, match="closed"):
                await log.create("another", [0])
            with pytest.raises(LogUnavailableError, match="closed"):
                partition.read_now(0, 1, 1)
            with pytest.raises(LogUnavailableError, match="closed"):
                await partition.read(0, 1, 1)

        self.run(test, open_log)


class Held:
    """A log that is closed in the end, for `aclosing`."""

    def __init__(self, log: Log) -> None:
        self.log = log

    async def aclose(self) -> None:
        await self.log.close()


if TYPE_CHECKING:
    Opener = Callable[[], Awaitable[Log]]
