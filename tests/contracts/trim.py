"""What every log must do that trims: `storage.trim_api`."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Protocol

import pytest

from ropeway.storage.api import Filter, Log, NoSuchPartitionError
from ropeway.storage.trim_api import Trimmable
from tests.contracts.log import TOPIC, Held, begin, opened, read_all, record, texts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.storage.api import Partition

    Opener = Callable[[], Awaitable["TrimmableLog"]]


class TrimmableLog(Log, Trimmable, Protocol):
    """A log that trims."""


async def fill(partition: Partition, first: int, end: int) -> None:
    """Append `first`, ... a second apart, each with itself and `k` as keys."""
    for at in range(first, end):
        made = record(f"{at}", at % 2, [f"{at}", "k"])
        await begin(partition, made, store_ms=1000 * at)


class TrimContract:
    """Laws of `Trimmable`; the fixture `open_log` opens the same log again."""

    def run(self, test: Callable[[TrimmableLog], Awaitable[None]], log: Opener) -> None:
        """Run a test on a log with ten records in partition 0 and two in 1."""

        async def main() -> None:
            async with contextlib.aclosing(Held(await log())) as held:
                await held.log.create(TOPIC, [0, 1])
                await fill(await opened(held.log, 0), 0, 10)
                await fill(await opened(held.log, 1), 0, 2)
                await test(held.log)
                await self.look(held.log)
            async with contextlib.aclosing(Held(await log())) as held:
                await self.look(held.log)

        asyncio.run(main())

    async def look(self, log: TrimmableLog) -> None:
        """What is so now, and after a restart."""
        partition, other = await opened(log, 0), await opened(log, 1)
        assert (partition.first, partition.end) == (6, 10)
        for offset in (0, 5, 6):
            assert texts(await partition.read(offset, 1, 1)) == ["6"]
            near = partition.read_now(offset, 1, 1)
            assert near is None or texts(near) == ["6"]
        assert await read_all(partition) == ["6", "7", "8", "9"]
        assert await read_all(partition, wanted=Filter([0])) == ["6", "8"]
        assert await partition.offset_at(0) == 6
        assert await partition.offset_at(2000, upper=True) == 6
        assert await partition.offset_at(7500) == 8
        assert await partition.store_time(5) is None
        assert await partition.store_time(6) == 6000
        assert await log.query(TOPIC, "5", 0, 1 << 40, 9) == []
        found = await log.query(TOPIC, "k", 0, 1 << 40, 20)
        assert sorted(one.offset for one in found) == [0, 1, 6, 7, 8, 9]
        assert (other.first, await read_all(other)) == (0, ["0", "1"])

    def test_what_is_below_the_floor_is_never_read(self, open_log: Opener) -> None:
        async def test(log: TrimmableLog) -> None:
            assert await log.trim(TOPIC, {0: 6}, dry_run=True) == {0: 6}
            assert log.partition(TOPIC, 0).first == 0
            assert await log.trim(TOPIC, {0: 6}) == {0: 6}

        self.run(test, open_log)

    def test_a_floor_only_rises_and_stays_within_what_there_is(
        self, open_log: Opener
    ) -> None:
        async def test(log: TrimmableLog) -> None:
            assert await log.trim(TOPIC, {0: 6, 1: 0}) == {0: 6, 1: 0}
            assert await log.trim(TOPIC, {0: 2}, dry_run=True) == {0: 6}
            assert await log.trim(TOPIC, {0: 2}) == {0: 6}
            assert await log.trim(TOPIC, {0: 99}, dry_run=True) == {0: 10}
            with pytest.raises(NoSuchPartitionError):
                await log.trim(TOPIC, {0: 9, 7: 1})

        self.run(test, open_log)

    def test_an_emptied_partition_goes_on_where_it_was(self, open_log: Opener) -> None:
        async def main() -> None:
            async with contextlib.aclosing(Held(await open_log())) as held:
                await held.log.create(TOPIC, [0])
                await fill(await opened(held.log, 0), 0, 10)
                assert await held.log.trim(TOPIC, {0: 1 << 50}) == {0: 10}
                partition = held.log.partition(TOPIC, 0)
                assert (partition.first, partition.end) == (10, 10)
                assert not (await partition.read(0, 9, 1 << 20)).records
            async with contextlib.aclosing(Held(await open_log())) as held:
                partition = await opened(held.log, 0)
                assert (partition.first, partition.end) == (10, 10)
                await fill(partition, 10, 12)
                assert await read_all(partition) == ["10", "11"]
                assert await held.log.trim(TOPIC, {0: 11}) == {0: 11}
                await held.log.delete(TOPIC)
                with pytest.raises(NoSuchPartitionError):
                    await held.log.trim(TOPIC, {0: 11})
                await held.log.create(TOPIC, [0])
                partition = await opened(held.log, 0)
                assert (partition.first, partition.end) == (0, 0)

        asyncio.run(main())
