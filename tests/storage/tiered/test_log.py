"""A log with a tier keeps the contract of logs, wherever its records are read from."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.storage.api import (
    LogDamagedError,
    LogUnavailableError,
    NoSuchPartitionError,
)
from ropeway.storage.file import open_log as open_files
from ropeway.storage.tiered import object_names
from ropeway.storage.tiered.dispatcher import BACKFILL
from ropeway.storage.tiered.memory import MemoryProvider
from ropeway.storage.tiered.partition import TieredPartition
from tests.contracts.log import TOPIC, LogContract, read_all
from tests.storage.tiered.tiers import (
    QUICK,
    SMALL,
    Faulty,
    fails,
    fill,
    forget_local,
    running,
    tiered,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ropeway.storage.tiered.log import TieredLog
    from ropeway.storage.tiered.tier_config import ReadLevel


class Eager(TieredPartition):
    """Has the tier take all there is before each read."""

    async def read(self, *args, **more):
        await self.log.dispatch()
        return await super().read(*args, **more)


@pytest.mark.parametrize(
    ("level", "eager"),
    [
        ("NOT_IN_DISK", False),
        ("DISABLE", True),
        ("NOT_IN_MEM", True),
        ("FORCE", True),
    ],
)
@pytest.mark.parametrize("compression", ["none", "zstd"])
class TestTieredLog(LogContract):
    @pytest.fixture
    def open_log(
        self, disk_path: Path, level: ReadLevel, eager: bool, compression, monkeypatch
    ) -> Callable[[], Awaitable[TieredLog]]:
        provider = MemoryProvider()
        settings = msgspec.structs.replace(QUICK, level=level, compression=compression)

        async def again() -> TieredLog:
            log = await tiered(disk_path, provider, settings)
            if eager:
                monkeypatch.setattr(Eager, "log", log, raising=False)
            return log

        if eager:
            monkeypatch.setattr("ropeway.storage.tiered.log.TieredPartition", Eager)
        return again


def test_what_the_log_has_dropped_is_read_from_the_tier(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, MemoryProvider()) as log:
            partition = log.partition(TOPIC, 0)
            texts = [f"{at}" for at in range(300)]
            await fill(partition, texts)
            await log.dispatch()
            await forget_local(log, partition)
            assert partition.inner.first == 300
            assert (partition.first, partition.end) == (0, 301)
            assert (await read_all(partition))[:300] == texts
            assert partition.read_now(0, 1, 1) is not None
            # Time, key and store time, on both sides of where the log begins.
            assert await partition.offset_at(1000) == 0
            assert await partition.offset_at(11_500) == 11
            assert await partition.offset_at(11_500, upper=True) == 10
            assert await partition.offset_at(0, upper=True) == 0
            assert await partition.offset_at(1 << 40) == 301
            assert await partition.store_time(299) == 300_000
            assert await partition.store_time(300) == 500_000
            (found,) = await log.query(TOPIC, "key-77", 0, 1 << 40, 5)
            assert (found.offset, found.data[4:]) == (77, b"77")
            assert await log.query(TOPIC, "key-77", 0, 77_000, 5) == []

    asyncio.run(main())


def test_the_log_drops_nothing_that_the_tier_has_not(tmp_path: Path) -> None:
    async def main() -> None:
        provider = Faulty(fails("put"))
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, ["a", "b"])
            with pytest.raises(LogUnavailableError):
                await log.dispatch()
            await forget_local(log, partition)
            assert (partition.inner.first, partition.first) == (0, 0)
            provider.fault = lambda _what, _name: None
            await log.dispatch()
            await forget_local(log, partition)
            assert partition.inner.first > 0
            assert (await read_all(partition))[:2] == ["a", "b"]

    asyncio.run(main())


def test_what_was_there_before_comes_by_a_backfill(tmp_path: Path) -> None:
    async def main() -> None:
        settings = msgspec.structs.replace(QUICK, level="FORCE")
        inner = open_files(tmp_path / "log", SMALL)
        await inner.create(TOPIC, [0])
        await fill(inner.partition(TOPIC, 0), ["a", "b", "c"])
        await inner.close()
        provider = Faulty()
        async with running(tmp_path, provider, settings) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, ["d"])
            await log.dispatch()
            (flat,) = log.tier_index.flats.values()
            assert (flat.first, flat.end) == (3, 4)
            assert await read_all(partition) == ["a", "b", "c", "d"]
            log.tier_index.metadata.put_state(BACKFILL, "asked")
            await log.dispatch()
            assert [(one.base, one.end) for one in flat.segments] == [(0, 3), (3, 4)]
            await log.merge()
            await forget_local(log, partition)
            assert (await read_all(partition))[:4] == ["a", "b", "c", "d"]
        # The setting does the same at the first start.
        (tmp_path / "tier" / "tier.db").unlink()
        provider = Faulty()
        settings = msgspec.structs.replace(settings, backfill=True)
        async with running(tmp_path, provider, settings) as log:
            await log.dispatch()
            (flat,) = log.tier_index.flats.values()
            assert (flat.first, flat.end) == (4, 5)

    asyncio.run(main())


def test_lost_metadata_are_made_again_from_the_provider(tmp_path: Path) -> None:
    async def main() -> None:
        provider = MemoryProvider()
        texts = [f"{at}" for at in range(50)]
        async with running(tmp_path, provider) as log:
            await fill(log.partition(TOPIC, 0), texts)
            await log.dispatch()
            await forget_local(log, log.partition(TOPIC, 0))
        for file in (tmp_path / "tier").iterdir():
            file.unlink()
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            assert (partition.first, partition.end) == (0, 51)
            assert (await read_all(partition))[:50] == texts
            await log.dispatch()
            (flat,) = log.tier_index.flats.values()
            assert [(one.base, one.end) for one in flat.segments] == [(0, 50), (50, 51)]

    asyncio.run(main())


def test_an_old_listing_is_refused_until_it_has_all_that_the_log_has_deleted(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        provider = MemoryProvider()
        texts = [f"{at}" for at in range(6)]
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            for text in texts:
                await fill(partition, [text])
                await log.dispatch()
            await forget_local(log, partition)
            at_most_one = {
                name
                for name in provider.objects
                if object_names.parse(name)[0].base == 3
            }
        for file in (tmp_path / "tier").iterdir():
            file.unlink()
        old = {name: provider.objects.pop(name) for name in at_most_one}
        for _ in range(2):
            with pytest.raises(LogDamagedError, match="may be an old one; start again"):
                await tiered(tmp_path, provider)
        provider.objects |= old
        async with running(tmp_path, provider) as log:
            assert (await read_all(log.partition(TOPIC, 0)))[:6] == texts

    asyncio.run(main())


def test_a_topic_that_was_made_again_has_nothing_of_the_old_one(tmp_path: Path) -> None:
    async def main() -> None:
        provider = MemoryProvider()
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, ["old"] * 3)
            await log.dispatch()
            await log.delete(TOPIC)
            with pytest.raises(NoSuchPartitionError):
                await partition.read(0, 1, 1)
            await log.create(TOPIC, [0])
            again = log.partition(TOPIC, 0)
            assert (again.first, again.end) == (0, 0)
            await fill(again, ["new"])
            await log.dispatch()
            await forget_local(log, again)
            assert (await read_all(again))[:1] == ["new"]
            assert [one.topic for one in log.tier_index.flats.values()] == [TOPIC]
            assert sum(name.endswith("index") for name in provider.objects) == 1

    asyncio.run(main())


def test_a_topic_deleted_during_its_upload_leaves_no_object(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, provider := Faulty()) as log:
            await fill(log.partition(TOPIC, 0), ["a"])

            async def deleted() -> None:
                provider.fault = lambda _what, _name: None
                await log.delete(TOPIC)

            provider.fault = lambda what, _: deleted() if what == "put" else None
            await log.dispatch()
            await log.tier_index.settle()
            assert provider.objects == {}
            assert log.tier_index.flats == {}
            assert list(log.tier_index.metadata.iterate_topic()) == []

    asyncio.run(main())


def test_an_older_copy_of_the_log_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        provider = MemoryProvider()
        async with running(tmp_path, provider) as log:
            await fill(log.partition(TOPIC, 0), ["a"])
        shutil.copytree(tmp_path / "log", tmp_path / "copy")
        async with running(tmp_path, provider) as log:
            await fill(log.partition(TOPIC, 0), ["b"])
            await log.dispatch()
        shutil.rmtree(tmp_path / "log")
        (tmp_path / "copy").rename(tmp_path / "log")
        with pytest.raises(
            LogDamagedError, match=r"up to offset 2, the log only up to 1"
        ):
            await tiered(tmp_path, provider)

    asyncio.run(main())


def test_segments_go_when_their_topic_says_and_first_moves_on(tmp_path: Path) -> None:
    async def main() -> None:
        provider = MemoryProvider()
        kept_ms = {TOPIC: 1000}
        settings = msgspec.structs.replace(QUICK, retention_ms=None)
        async with running(tmp_path, provider, settings, reserve_ms=kept_ms.get) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, ["a", "b"])
            await log.dispatch()
            await forget_local(log, partition)
            assert partition.first == 0
            assert await log.retire(1) == 0
            assert await log.retire(1 << 50) == 1
            assert partition.first == partition.inner.first == 2
            assert provider.objects == {}
            assert await partition.offset_at(0) == 2
            chunk = await partition.read(0, 9, 1)
            assert (chunk.records, chunk.next_offset) == (1, 3)

    asyncio.run(main())


def test_the_background_does_it_all_by_itself(tmp_path: Path) -> None:
    async def main() -> None:
        provider = MemoryProvider()
        settings = msgspec.structs.replace(QUICK, commit_records=1, merge_count=3)
        async with running(tmp_path, provider, settings) as log:
            log.start()
            partition = log.partition(TOPIC, 0)
            await fill(partition, ["a", "b", "c"])
            flats = log.tier_index.flats
            await until(
                lambda: (
                    [len(flat.segments) for flat in flats.values()] == [1]
                    and [flat.end for flat in flats.values()] == [3]
                )
            )
            names = {name for name in provider.objects if name.endswith("index")}
            await until(lambda: len(provider.objects) == 3)
            assert len(names) >= 1

    asyncio.run(main())
