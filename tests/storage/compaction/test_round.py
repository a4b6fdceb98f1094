"""Rounds of compaction: what stays, whatever the order and the memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.storage.api import LogDamagedError
from tests.contracts.log import TOPIC
from tests.storage.compaction.logs import (
    SETTINGS,
    Clock,
    Describer,
    closing,
    compacted,
    partition_of,
    send,
    stored,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_of_1024_messages_with_10_keys_the_last_10_are_left(tmp_path: Path) -> None:
    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, [f"key-{n % 10}={n}" for n in range(1024)])
            await log.compact(TOPIC)
            wanted = {n: f"key-{n % 10}={n}" for n in range(1014, 1024)}
            assert await stored(partition) == wanted
            assert (partition.first, partition.end) == (1014, 1024)
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            assert await stored(partition) == wanted
            assert (partition.first, partition.end) == (1014, 1024)

    asyncio.run(main())


@pytest.mark.parametrize("map_bytes", [1 << 10, 1 << 20], ids=["rounds", "one round"])
def test_more_keys_than_fit_into_memory_end_with_the_same_records(
    tmp_path: Path, map_bytes: int
) -> None:
    async def main() -> None:
        settings = msgspec.structs.replace(SETTINGS, map_bytes=map_bytes)
        async with closing(compacted(tmp_path, settings)) as log:
            partition = await partition_of(log)
            sent = [f"key-{n * 7 % 300}={n}" for n in range(1000)]
            await send(partition, sent)
            await log.compact(TOPIC)
            last = {text.partition("=")[0]: n for n, text in enumerate(sent)}
            wanted = {n: sent[n] for n in sorted(last.values())}
            assert await stored(partition) == wanted
            assert (partition.clean.now.generation > 1) is (map_bytes == 1 << 10)

    asyncio.run(main())


def test_later_rounds_go_on_where_the_last_one_ended(tmp_path: Path) -> None:
    async def main() -> None:
        last: dict[str, int] = {}
        sent: list[str] = []
        for start in range(0, 900, 100):
            async with closing(compacted(tmp_path)) as log:
                partition = await partition_of(log)
                new = [f"key-{n * n % 97}={n}" for n in range(start, start + 100)]
                last |= {one.partition("=")[0]: start + n for n, one in enumerate(new)}
                sent += new
                await send(partition, new)
                await log.compact(TOPIC)
                assert await stored(partition) == {
                    n: sent[n] for n in sorted(last.values())
                }
                assert partition.clean.now.clean_end == start + 100

    asyncio.run(main())


def test_a_tombstone_stays_for_its_time_and_takes_its_key_with_it(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        clock = Clock()
        async with closing(compacted(tmp_path, clock=clock)) as log:
            partition = await partition_of(log)
            await send(partition, ["a=1", "b=1", "a=", "c=1"])
            await log.compact(TOPIC)
            left = {1: "b=1", 2: "a=", 3: "c=1"}
            assert await stored(partition) == left
            clock.ms += SETTINGS.tombstone_ms - 1
            await log.compact(TOPIC)
            assert await stored(partition) == left
            clock.ms += 1
            await log.cleaner.look()
            assert await stored(partition) == {1: "b=1", 3: "c=1"}

    asyncio.run(main())


def test_records_without_a_key_stay_as_long_as_on_any_topic(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Clock()
        kept_ms = SETTINGS.keyless_ms
        assert kept_ms is not None
        async with closing(compacted(tmp_path, clock=clock)) as log:
            partition = await partition_of(log)
            await send(partition, ["plain", "a=1"], store_ms=1000)
            clock.ms = 1000 + kept_ms - 1
            await log.compact(TOPIC)
            assert await stored(partition) == {0: "plain", 1: "a=1"}
            clock.ms += 1
            await log.cleaner.look()
            assert await stored(partition) == {1: "a=1"}

    asyncio.run(main())


def test_what_is_no_record_is_said_and_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(*_: object) -> bytes:
        raise ValueError("no stored messages")

    async def main() -> None:
        async with closing(compacted(tmp_path)) as log:
            partition = await partition_of(log)
            await send(partition, ["a=1", "a=2"])
            with monkeypatch.context() as fault:
                fault.setattr(Describer, "rows", rows)
                wanted = r"partition 0, offset 0 and on: no stored messages; stop the"
                with pytest.raises(LogDamagedError, match=wanted):
                    await log.compact(TOPIC)
                await log.cleaner.look()
                (status,) = await log.status(TOPIC)
                assert "no stored messages" in (status.problem or "")
            assert await stored(partition) == {0: "a=1", 1: "a=2"}
            await log.compact(TOPIC)
            assert await stored(partition) == {1: "a=2"}

    asyncio.run(main())
