"""What every log must do whose partitions begin at other offsets than 0."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.api import MAX_OFFSET, BeginsElsewhereError, Filter, LogLimitError
from tests.contracts.log import TOPIC, Held, begin, opened, read_all, record, texts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.storage.api import Log, Partition

    Opener = Callable[[], Awaitable[Log]]

AT = 5_000_000_000
"""Where partition 0 begins: more than 32 bits."""


def text_of(first: int, number: int) -> str:
    """A record that says its offset and, for compacted logs of tests, its time."""
    return f"{first + number}@{1000 * number}"


async def fill(partition: Partition, first: int, count: int) -> None:
    """Append such records, a second apart, each with its offset as key."""
    for number in range(count):
        made = record(text_of(first, number), 0, [f"{first + number}"])
        assert await begin(partition, made, store_ms=1000 * number) == first + number


class BeginningContract:
    """Laws of `begins` of `Log.create`; the fixture `open_log` opens the log again."""

    last_offset = MAX_OFFSET
    """The largest offset that the log can hold."""

    def run(self, *tests: Callable[[Log], Awaitable[None]], log: Opener) -> None:
        """Run tests on the same log, which is opened anew for each."""

        async def main() -> None:
            for test in tests:
                async with contextlib.aclosing(Held(await log())) as held:
                    await test(held.log)

        asyncio.run(main())

    def test_what_has_no_record_yet_begins_and_ends_there(
        self, open_log: Opener
    ) -> None:
        async def make(log: Log) -> None:
            await log.create(TOPIC, [0, 1], begins={0: AT})
            await look(log)

        async def look(log: Log) -> None:
            for number, at in ((0, AT), (1, 0)):
                one = await opened(log, number)
                assert (one.first, one.end, one.next_offset) == (at, at, at)
            partition = log.partition(TOPIC, 0)
            for offset in (0, AT - 1, AT):
                found = await partition.read(offset, 9, 1 << 20)
                assert not found.records
            assert await partition.offset_at(0) == AT
            assert await partition.offset_at(1 << 40) == AT
            assert await partition.offset_at(1 << 40, upper=True) == AT
            assert await partition.store_time(AT - 1) is None
            assert await partition.store_time(AT) is None
            assert log.misfits == 0

        self.run(make, look, look, log=open_log)

    def test_the_first_record_gets_that_offset(self, open_log: Opener) -> None:
        async def make(log: Log) -> None:
            await log.create(TOPIC, [0, 1], begins={0: AT})

        async def append(log: Log) -> None:
            await fill(await opened(log, 1), 0, 2)
            await fill(await opened(log, 0), AT, 6)
            await look(log)

        async def look(log: Log) -> None:
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (AT, AT + 6)
            wanted = [text_of(AT, number) for number in range(6)]
            for offset in (0, 3, AT - 1, AT):
                assert texts(await partition.read(offset, 1, 1)) == wanted[:1]
                near = partition.read_now(offset, 1, 1)
                assert near is None or texts(near) == wanted[:1]
                assert await read_all(partition, offset) == wanted
            long = Filter(accept=lambda data: len(data) == len(wanted[1]) + 4)
            assert await read_all(partition, 0, long) == wanted[1:]
            assert await partition.offset_at(2500) == AT + 3
            assert await partition.offset_at(2500, upper=True) == AT + 2
            assert await partition.store_time(AT + 3) == 3000
            found = await log.query(TOPIC, f"{AT + 4}", 0, 1 << 40, 9)
            assert [one.offset for one in found] == [AT + 4]
            assert await read_all(await opened(log, 1)) == ["0@0", "1@1000"]
            assert log.misfits == 0

        async def go_on(log: Log) -> None:
            assert await begin(await opened(log, 0), record("more")) == AT + 6

        self.run(make, append, look, go_on, log=open_log)

    def test_asked_again_it_stays_and_says_where_it_begins(
        self, open_log: Opener
    ) -> None:
        async def make(log: Log) -> None:
            await log.create(TOPIC, [0], begins={0: AT})
            await again(log)

        async def again(log: Log) -> None:
            await log.create(TOPIC, [0])
            await log.create(TOPIC, [0], begins={0: AT})
            for other in (0, AT - 1, AT + 2):
                with pytest.raises(
                    BeginsElsewhereError,
                    match=rf"partition 0 of topic {TOPIC} begins at offset {AT}; "
                    f"asked for: {other}",
                ):
                    await log.create(TOPIC, [0, 1], begins={0: other, 1: 7})
            assert log.topics() == {TOPIC: frozenset({0})}

        async def append(log: Log) -> None:
            await fill(await opened(log, 0), AT, 2)
            await again(log)

        self.run(make, again, append, again, log=open_log)

    def test_what_begins_at_0_does_so_for_ever(self, open_log: Opener) -> None:
        async def make(log: Log) -> None:
            await log.create(TOPIC, [0])
            await fill(await opened(log, 0), 0, 2)
            await look(log)

        async def look(log: Log) -> None:
            await log.create(TOPIC, [0], begins={0: 0})
            with pytest.raises(BeginsElsewhereError, match="begins at offset 0"):
                await log.create(TOPIC, [0], begins={0: 2})
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (0, 2)

        self.run(make, look, log=open_log)

    def test_later_partitions_begin_where_they_are_told(self, open_log: Opener) -> None:
        async def make(log: Log) -> None:
            await log.create(TOPIC, [0], begins={0: AT})
            await log.create(TOPIC, [0, 1, 2], begins={0: AT, 1: 7})
            await look(log)

        async def look(log: Log) -> None:
            ends = [(await opened(log, number)).end for number in range(3)]
            assert ends == [AT, 7, 0]

        self.run(make, look, log=open_log)

    def test_offsets_out_of_bounds_are_refused(self, open_log: Opener) -> None:
        async def make(log: Log) -> None:
            for wrong in (-1, self.last_offset + 1, 1 << 63):
                with pytest.raises(
                    LogLimitError,
                    match=f"would begin at offset {wrong}; allowed: 0 to "
                    f"{self.last_offset}",
                ):
                    await log.create(TOPIC, [0, 1], begins={1: wrong})
            assert log.topics() == {}
            await log.create(TOPIC, [0], begins={0: self.last_offset})
            partition = await opened(log, 0)
            assert await begin(partition, record("last")) == self.last_offset
            with pytest.raises(LogLimitError):
                await begin(partition, record("beyond"))

        async def look(log: Log) -> None:
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (
                self.last_offset,
                self.last_offset + 1,
            )
            assert await read_all(partition, self.last_offset) == ["last"]

        self.run(make, look, log=open_log)

    def test_made_again_it_begins_where_it_is_told_then(self, open_log: Opener) -> None:
        async def make(log: Log) -> None:
            await log.create(TOPIC, [0], begins={0: AT})
            await fill(await opened(log, 0), AT, 1)
            await log.delete(TOPIC)
            await log.create(TOPIC, [0])
            assert (await opened(log, 0)).end == 0
            await log.delete(TOPIC)
            await log.create(TOPIC, [0], begins={0: 3})

        async def look(log: Log) -> None:
            partition = await opened(log, 0)
            assert (partition.first, partition.end) == (3, 3)

        self.run(make, look, log=open_log)
