"""A provider that is slow, fails, lies or forgets: nothing is lost, and it is said."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest

from ropeway.storage.api import LogDamagedError, LogUnavailableError
from ropeway.storage.tiered.api import ProviderError
from ropeway.storage.tiered.dispatcher import PAUSED
from ropeway.storage.tiered.memory import MemoryProvider
from tests.contracts.log import TOPIC, begin, read_all, record
from tests.storage.tiered.tiers import (
    QUICK,
    Faulty,
    fails,
    fill,
    forget_local,
    running,
    until,
)

TEXTS = [f"{at}" for at in range(20)]


@pytest.mark.parametrize("part", ["data", "keys", "index"])
@pytest.mark.parametrize("times", [1, 3])
def test_uploads_that_fail_are_tried_again_by_themselves(tmp_path, part, times):
    async def main() -> None:
        provider = Faulty(fails("put", part=f".{part}", times=times))
        async with running(tmp_path, provider) as log:
            await fill(log.partition(TOPIC, 0), TEXTS)
            log.start()
            flats = log.tier_index.flats
            await until(lambda: any(flat.end == 20 for flat in flats.values()))
            await until(lambda: log.dispatcher.failure is None)
            assert log.dispatcher.safe_position > 0
            await forget_local(log, log.partition(TOPIC, 0))
            assert (await read_all(log.partition(TOPIC, 0)))[:20] == TEXTS

    asyncio.run(main())


_FULL = "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"


def test_metadata_that_cannot_be_written_are_written_once_they_can_be(tmp_path):
    async def main() -> None:
        async with running(tmp_path, MemoryProvider()) as log:
            await fill(log.partition(TOPIC, 0), TEXTS)
            file = log.tier_index.metadata._file
            for table in ("segment", "state"):
                name = f"{table}_full BEFORE INSERT ON {table}"
                file.execute(f"CREATE TEMP TRIGGER {name} {_FULL}")
            log.start()
            await until(lambda: "disk is full" in (log.dispatcher.failure or ""))
            assert log.dispatcher.safe_position == 0
            for table in ("segment", "state"):
                file.execute(f"DROP TRIGGER {table}_full")
            await until(lambda: log.dispatcher.failure is None)
            await until(lambda: log.dispatcher.safe_position > 0)
            await forget_local(log, log.partition(TOPIC, 0))
            assert (await read_all(log.partition(TOPIC, 0)))[:20] == TEXTS

    asyncio.run(main())


def test_a_put_whose_answer_is_lost_is_put_again_and_counts_once(tmp_path):
    async def main() -> None:
        lost = ["data", "index"]

        def fault(what: str, name: str) -> object:
            if what == "put" and lost and name.endswith(lost[0]):
                lost.pop(0)
                return "lost answer"
            return None

        async with running(tmp_path, Faulty(fault)) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            for _ in range(2):
                with pytest.raises(ProviderError, match="503"):
                    await log.dispatch()
            await log.dispatch()
            await forget_local(log, partition)
            assert (await read_all(partition))[:20] == TEXTS

    asyncio.run(main())


def test_a_part_of_an_object_is_not_taken_for_the_whole(tmp_path):
    async def main() -> None:
        provider = Faulty(lambda what, _: "partial" if what == "put" else None)
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            with pytest.raises(
                ProviderError, match=r"has not the .* bytes that were put"
            ):
                await log.dispatch()
            # The log keeps what the tier has not.
            await forget_local(log, partition)
            assert partition.inner.first == 0
            provider.fault = lambda _what, _name: None
            await log.dispatch()
            await forget_local(log, partition)
            assert partition.inner.first > 0
            assert (await read_all(partition))[:20] == TEXTS

    asyncio.run(main())


def test_while_uploads_fail_the_log_keeps_all_and_memory_is_bounded(tmp_path):
    async def main() -> None:
        provider = Faulty(fails("put"))
        settings = msgspec.structs.replace(QUICK, buffer_bytes=100_000)
        async with running(tmp_path, provider, settings) as log:
            partition = log.partition(TOPIC, 0)
            for _ in range(12):
                await begin(partition, record("x" * 40_000))
            for _ in range(5):
                with pytest.raises(ProviderError, match="503 Slow Down"):
                    await log.dispatch()
            waiting = log.dispatcher.waiting_bytes
            await fill(partition, ["y" * 40_000] * 12)
            for _ in range(5):
                with pytest.raises(ProviderError):
                    await log.dispatch()
            assert log.dispatcher.waiting_bytes == waiting > 100_000
            await forget_local(log, partition)
            assert partition.inner.first == 0
            provider.fault = lambda _what, _name: None
            await log.dispatch()
            assert log.dispatcher.waiting_bytes == 0
            await forget_local(log, partition)
            assert len(await read_all(partition)) == 26

    asyncio.run(main())


def test_reads_are_tried_again_and_then_say_what_failed(tmp_path):
    async def main() -> None:
        provider = Faulty()
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            await log.dispatch()
            await forget_local(log, partition)
            provider.fault = fails("get", part=".index", times=2)
            assert (await partition.read(0, 32, 1 << 20)).records == 20
            await fill(log.partition(TOPIC, 1), TEXTS)
            await log.dispatch()
            await forget_local(log, log.partition(TOPIC, 1))
            provider.fault = fails("get", part=".data")
            with pytest.raises(
                LogUnavailableError, match=r"faulty://here, object .*503"
            ):
                await log.partition(TOPIC, 1).read(0, 32, 1 << 20)
            provider.fault = lambda _what, _name: None
            assert (await log.partition(TOPIC, 1).read(0, 32, 1 << 20)).records == 20

    asyncio.run(main())


@pytest.mark.parametrize("part", ["data", "index", "keys"])
def test_an_altered_object_is_never_taken_for_what_was_put(tmp_path, part):
    async def main() -> None:
        provider = Faulty()
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            await log.dispatch()
            await forget_local(log, partition)
            provider.fault = lambda what, name: (
                "altered" if what == "get" and name.endswith(part) else None
            )
            refused = rf"faulty://here, object .*\.{part}: .*restore"
            if part == "keys":
                with pytest.raises(LogDamagedError, match=refused):
                    await log.query(TOPIC, "key-3", 0, 1 << 40, 5)
            else:
                with pytest.raises(LogDamagedError, match=refused):
                    await partition.read(0, 32, 1 << 20)

    asyncio.run(main())


def test_a_missing_object_is_named_and_the_log_is_read_where_it_can_be(tmp_path):
    async def main() -> None:
        provider = Faulty()
        settings = msgspec.structs.replace(QUICK, level="FORCE")
        async with running(tmp_path, provider, settings) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            await log.dispatch()
            provider.objects.clear()
            assert await read_all(partition) == TEXTS
            await begin(partition, record("x" * 70_000))
            await log.inner.flush()
            await log.inner.expire(1 << 50)
            with pytest.raises(
                LogDamagedError, match=r"index, though it was put there"
            ):
                await partition.read(0, 32, 1 << 20)

    asyncio.run(main())


def test_what_is_taken_away_while_it_is_read_is_passed_over(tmp_path):
    async def main() -> None:
        provider = Faulty()
        settings = msgspec.structs.replace(QUICK, commit_records=5)
        async with running(tmp_path, provider, settings) as log:
            partition = log.partition(TOPIC, 0)
            for low in range(0, 20, 5):
                await fill(partition, TEXTS[low : low + 5])
                await log.dispatch()
            await forget_local(log, partition)
            (flat,) = log.tier_index.flats.values()

            async def taken_away() -> None:
                provider.fault = lambda _what, _name: None
                await log.tier_index.expire(flat.segments[0])

            provider.fault = lambda what, _: taken_away() if what == "get" else None
            chunk = await partition.read(0, 32, 1 << 20)
            assert chunk.records == 15
            assert partition.first == 5

    asyncio.run(main())


def test_a_slow_provider_holds_up_neither_appends_nor_reads_of_what_is_new(tmp_path):
    async def main() -> None:
        never = asyncio.Event()
        provider = Faulty(lambda what, _: never.wait() if what == "put" else None)
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            log.start()
            await until(lambda: "put" in {what for what, _ in provider.asked})
            await fill(partition, TEXTS)
            assert len(await read_all(partition)) == 40

    asyncio.run(main())


def test_a_pause_stops_uploads_until_they_are_resumed(tmp_path):
    async def main() -> None:
        provider = MemoryProvider()
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            put = log.tier_index.metadata.put_state
            put(PAUSED, "asked")
            await fill(partition, TEXTS)
            await log.dispatch()
            assert provider.objects == {}
            await forget_local(log, partition)
            assert partition.inner.first == 0
            put(PAUSED, None)
            await log.dispatch()
            assert provider.objects

    asyncio.run(main())


def test_cold_consumers_hold_up_neither_sends_nor_hot_consumers(tmp_path):
    async def main() -> None:
        never = asyncio.Event()
        provider = Faulty()
        settings = msgspec.structs.replace(QUICK, commit_records=5, fetches=3)
        async with running(tmp_path, provider, settings) as log:
            partition = log.partition(TOPIC, 0)
            for low in range(0, 20, 5):
                await fill(partition, TEXTS[low : low + 5])
                await log.dispatch()
            await forget_local(log, partition)
            provider.asked.clear()
            provider.fault = lambda what, _: never.wait() if what == "get" else None
            cold = [
                asyncio.ensure_future(partition.read(at % 20, 1, 1 << 20))
                for at in range(40)
            ]
            await until(lambda: len(provider.asked) == 3)
            end = partition.end
            await fill(partition, TEXTS)
            assert await read_all(partition, end) == TEXTS
            # The provider is asked for no more at a time than it was allowed to be.
            assert len(provider.asked) == 3
            never.set()
            found = await asyncio.gather(*cold)
            texts = [one.data[0][4:].tobytes().decode() for one in found]
            assert texts == [TEXTS[at % 20] for at in range(40)]

    asyncio.run(main())


def test_a_segment_of_a_newer_version_is_told_from_damage_and_left_alone(tmp_path):
    async def main() -> None:
        provider = MemoryProvider()
        async with running(tmp_path, provider) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            await log.dispatch()
            await forget_local(log, partition)
            (name,) = (one for one in provider.objects if one.endswith("index"))
            before = provider.objects[name]
            newer = before[:8] + (3).to_bytes(2, "little") + before[10:]
            provider.objects[name] = newer
            with pytest.raises(
                LogDamagedError, match=r"has format 3; .* use a newer one$"
            ):
                await partition.read(0, 32, 1 << 20)
            await log.merge()
            assert provider.objects[name] == newer
            provider.objects[name] = before
            assert (await read_all(partition))[:20] == TEXTS

    asyncio.run(main())


@pytest.mark.parametrize("leap_ms", [10**12, -(10**12)])
def test_a_clock_that_leaps_there_and_back_destroys_nothing(tmp_path, leap_ms):
    async def main() -> None:
        provider = MemoryProvider()
        wall_ms = [time.time_ns() // 1_000_000]

        def now_ms() -> int:
            wall_ms[0] += 1
            return wall_ms[0]

        async def rounds() -> None:
            # Retention has looked at the clock anew, twice.
            looks = wall_ms[0] + 4
            await until(lambda: wall_ms[0] >= looks)

        settings = msgspec.structs.replace(QUICK, retention_ms=3_600_000)
        async with running(tmp_path, provider, settings, wall_ms=now_ms) as log:
            partition = log.partition(TOPIC, 0)
            await fill(partition, TEXTS)
            await log.dispatch()
            await forget_local(log, partition)
            log.start()
            wall_ms[0] += leap_ms
            await rounds()
            wall_ms[0] -= leap_ms
            await rounds()
        async with running(tmp_path, provider, settings, wall_ms=now_ms) as log:
            wall_ms[0] += leap_ms
            log.start()
            await rounds()
            assert (await read_all(log.partition(TOPIC, 0)))[:20] == TEXTS

    asyncio.run(main())
