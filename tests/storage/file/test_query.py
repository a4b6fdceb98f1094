"""Key look-ups over sealed and active segments, and over many keys."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.file import FileLogSettings, open_log, query
from ropeway.storage.file import segment as active
from ropeway.storage.file.index import (
    KEY_BYTES,
    KEYS_A_RUN,
    SealedIndex,
    places_in,
)
from ropeway.storage.file.segment import ActiveIndex
from tests.contracts.log import TOPIC, begin, record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


SETTINGS = FileLogSettings(segment_bytes=1 << 16)


def test_newest_come_first_over_all_segments(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0, 1])
        for i in range(40):
            partition = log.partition(TOPIC, i % 2)
            one = record(f"{i}:" + "x" * 5000, 0, ["k", f"k-{i}"])
            await begin(partition, one, store_ms=i)
        for again in (False, True):
            if again:
                await log.close()
                log = open_log(tmp_path, SETTINGS)
            found = await log.query(TOPIC, "k", 5, 35, 20)
            numbers = [int(one.data[4:].split(b":")[0]) for one in found]
            assert numbers == list(range(35, 15, -1))
            assert [one.offset for one in found] == [n // 2 for n in numbers]
            (one,) = await log.query(TOPIC, "k-3", 0, 99, 20)
            assert one.offset == 1
        await log.close()

    asyncio.run(main())


def test_thousands_of_keys_are_each_found(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        count = 10_000
        for at in range(0, count, 500):
            numbers = range(at, at + 500)
            await begin(partition, *[record("", 0, [f"key-{i}"]) for i in numbers])
        for i in range(0, count, 97):
            (one,) = await log.query(TOPIC, f"key-{i}", 0, 9999, 20)
            assert one.offset == i
        await log.close()

    asyncio.run(main())


@pytest.mark.slow
def test_a_key_that_very_many_have_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Before, 100,000 of them took 10 s in which nobody was heard."""

    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 24))
        await log.create(TOPIC, [0, 1])
        count = 20_000
        for at in range(0, count, 500):
            partition = log.partition(TOPIC, at // 500 % 2)
            records = [record("", 0, ["k"]) for _ in range(500)]
            await begin(partition, *records, store_ms=at)
        # The newest are found at once, the oldest behind all others.
        newest = await log.query(TOPIC, "k", 0, count, 3)
        assert [found.offset for found in newest] == [9999, 9998, 9997]
        queries = [
            asyncio.create_task(log.query(TOPIC, "k", 0, 0, 3)) for _ in range(8)
        ]
        fair_queue = 0
        while not all(one.done() for one in queries):
            fair_queue += 1
            await asyncio.sleep(0)
        # Each looks up 128 places of either partition without a pause.
        assert fair_queue >= len(queries) * 2 * ((count - 500) // 128)
        for one in queries:
            assert [found.offset for found in one.result()] == [499, 498, 497]
        await log.close()

    asyncio.run(main())


def test_of_a_key_that_very_many_have_only_the_newest_are_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, all were, and kept: 100,000 took 730 ms and 300 MiB."""
    looked_up: list[int] = []
    matching = query._matching

    def counted(*given: Any) -> list[query.Hit]:
        looked_up.append(len(given[-1]))
        return matching(*given)

    monkeypatch.setattr(query, "_matching", counted)

    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        for at in range(0, 5000, 500):
            records = [record("", 0, ["k"]) for _ in range(500)]
            await begin(partition, *records, store_ms=at)
        for again in (False, True):
            if again:
                await log.close()
                log = open_log(tmp_path, SETTINGS)
            looked_up.clear()
            found = await log.query(TOPIC, "k", 0, 9999, 20)
            assert [one.offset for one in found] == list(range(4999, 4979, -1))
            assert sum(looked_up) <= 256
            # In a file of an index.
            (oldest,) = await log.query(TOPIC, "k", 0, 0, 1)
            assert oldest.offset == 499
        await log.close()

    asyncio.run(main())


def test_of_a_key_that_very_many_have_only_the_newest_places_are_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, all were, without a pause: 30 ms for 100,000."""
    gathered = 0

    def counted(*given: Any) -> Iterator[int]:
        nonlocal gathered
        for place in places_in(*given):
            gathered += 1
            yield place

    monkeypatch.setattr(active, "places_in", counted)
    monkeypatch.setattr(query, "places_in", counted)

    async def main() -> None:
        nonlocal gathered
        settings = FileLogSettings(segment_bytes=1 << 20)
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0, 1])
        count = 5 * KEYS_A_RUN
        for _ in range(0, count, 512):
            records = [record("", 0, ["k"]) for _ in range(512)]
            await begin(log.partition(TOPIC, 0), *records)
        for in_file in (False, True):
            if in_file:
                for _ in range(3):
                    await begin(log.partition(TOPIC, 1), record("x" * (1 << 19)))
                await log.close()
                log = open_log(tmp_path, settings)
            assert isinstance(log._segments.all[0].index, SealedIndex) == in_file
            gathered = 0
            found = await log.query(TOPIC, "k", 0, 9999, 20)
            offsets = [one.offset for one in found]
            assert offsets == list(range(count - 1, count - 21, -1))
            assert len(offsets) <= gathered <= 2 * KEYS_A_RUN
        await log.close()

    asyncio.run(main())


def test_a_record_with_a_key_twice_is_found_once_wherever_its_keys_are_cut(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 24))
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        # One key more in front of them, so that the last key of a run has a twin.
        await begin(partition, record("", 0, ["k"]))
        count = KEYS_A_RUN
        for _ in range(0, count, 512):
            await begin(partition, *[record("", 0, ["k", "k"])] * 512)
        for again in (False, True):
            if again:
                await log.close()
                log = open_log(tmp_path, FileLogSettings(segment_bytes=1 << 24))
            found = await log.query(TOPIC, "k", 0, 1 << 62, 2 * count)
            assert [one.offset for one in found] == list(range(count, -1, -1))
        await log.close()

    asyncio.run(main())


def test_keys_of_other_topics_with_the_same_hash_do_not_count(tmp_path: Path) -> None:
    async def main() -> None:
        log = open_log(tmp_path, SETTINGS)
        await log.create(TOPIC, [0])
        await log.create("other", [0])
        other = log.partition("other", 0)
        other.key_seed = log.partition(TOPIC, 0).key_seed
        await begin(other, record("a", 0, ["k"]))
        assert await log.query(TOPIC, "k", 0, 9999, 20) == []
        await log.close()

    asyncio.run(main())


def test_indexes_in_memory_are_no_larger_than_their_segments(tmp_path: Path) -> None:
    """Messages with as many keys as properties may hold: each is in its block, too."""
    settings = FileLogSettings(segment_bytes=1 << 20)
    words = [f"{number:x}" for number in range(32_767 // 5)]

    async def main() -> None:
        log = open_log(tmp_path, settings)
        await log.create(TOPIC, [0])
        partition = log.partition(TOPIC, 0)
        most = 0
        for _ in range(60):
            await begin(partition, *[record(" ".join(words), 0, words)] * 2)
            active = [
                (segment, segment.index)
                for segment in log._segments.all
                if isinstance(segment.index, ActiveIndex)
            ]
            # The one that grows, and at most one whose index is being written.
            assert len(active) <= 2
            for segment, index in active:
                keys = sum(map(len, index._runs)) + len(index._tail)
                entries = sum(len(part.data) for part in index.parts.values())
                most = max(most, keys * KEY_BYTES + entries)
                assert keys * KEY_BYTES + entries < segment.written
        assert most > settings.segment_bytes // 4
        await log.close()

    asyncio.run(main())
