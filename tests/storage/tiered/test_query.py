"""Keys are found in many segments, newest first, and no more is fetched than needed."""

from __future__ import annotations

import asyncio
from array import array

from ropeway.storage.sealed.layout import KEYS_A_RUN, records_with
from ropeway.storage.tiered.fetcher import Fetcher
from ropeway.storage.tiered.loop_share import LoopShare
from ropeway.storage.tiered.pending_segment import Pending
from ropeway.storage.tiered.query import query
from ropeway.storage.tiered.reader import Reader
from ropeway.storage.tiered.tier_config import TieredSettings
from ropeway.storage.tiered.tier_partition import Segment, TierPartition
from tests.cycles import none_left
from tests.storage.tiered.segments import IDENTITY, NUMBER, TOPIC, encoded, put, run
from tests.storage.tiered.tiers import Faulty


def test_the_newest_are_found_first_and_older_segments_left_alone():
    async def main():
        provider, flat = Faulty(), TierPartition(TOPIC, NUMBER, IDENTITY)
        for at in range(10):
            made = encoded(["k", f"{at}"], 2 * at, store_ms=1000 + 100 * at)
            await put(provider, made)
            about = made.about
            flat.add(
                Segment(made.name, about.least_ms, about.most_ms, 0, 0, about.keys)
            )
        fetcher = Fetcher(provider, TieredSettings(), flat.has)
        reader = Reader(fetcher, LoopShare(lambda: 0))
        provider.asked.clear()

        async def found(key, times_ms, count, end=20):
            hits = await query(
                [(flat, range(end))], fetcher, reader, key, times_ms, count
            )
            return [one.offset for one in hits]

        async with none_left():
            assert await found("9", (0, 5000), 1) == [19]
        assert len({name for _, name in provider.asked}) == 3
        assert await found("k", (0, 5000), 3) == [18, 16, 14]
        assert await found("k", (0, 5000), 3, end=5) == [4, 2, 0]
        assert await found("3", (0, 5000), 5) == [7]
        assert await found("3", (0, 999), 5) == []
        assert await found("absent", (0, 5000), 5) == []
        await fetcher.close()

    asyncio.run(main())


def test_of_a_key_that_very_many_have_the_newest_alone_are_gathered(monkeypatch):
    """All of 100,000 were gathered and sorted, in 60 ms without a pause."""
    count, taken = 3 * KEYS_A_RUN + 1, []
    loop_ticks = 0

    def runs(keys, key_hash):
        for one in records_with(keys, key_hash):
            taken.append((loop_ticks, one))
            yield one

    monkeypatch.setattr("ropeway.storage.tiered.query.records_with", runs)

    async def main():
        def tick():
            nonlocal loop_ticks
            loop_ticks += 1
            loop.call_soon(tick)

        loop = asyncio.get_running_loop()
        tick()
        provider, flat = Faulty(), TierPartition(TOPIC, NUMBER, IDENTITY)
        made = encoded(["k"] * count)
        await put(provider, made)
        least, most, keys = made.about.least_ms, made.about.most_ms, made.about.keys
        flat.add(Segment(made.name, least, most, 0, 0, keys))
        fetcher = Fetcher(provider, TieredSettings(), flat.has)
        reader = Reader(fetcher, LoopShare(lambda: 0))

        async def found(times_ms, most):
            place = (flat, range(count - 1))
            hits = await query([place], fetcher, reader, "k", times_ms, most)
            return [one.offset for one in hits]

        assert await found((0, most), 3) == [count - 2, count - 3, count - 4]
        # The newest record is above the end, and in a run of its own.
        assert [len(run) for _, run in taken] == [1, KEYS_A_RUN]
        taken.clear()
        assert await found((0, least + 1), 3) == [1, 0]
        ticks = [tick for tick, _ in taken]
        assert len(ticks) == len(set(ticks)) == 4
        await fetcher.close()

    asyncio.run(main())


def test_a_record_with_two_keys_of_one_hash_is_found_once():
    keys = memoryview(array("Q", [5 << 32 | one for one in (0, 1, 1, 2)]))
    assert [*records_with(keys, 5)] == [[2, 1, 1, 0]]

    async def main():
        provider, flat = Faulty(), TierPartition(TOPIC, NUMBER, IDENTITY)
        twice = run(["k", "k"])
        twice = twice._replace(keys=twice.keys[:8] * 2 + twice.keys[8:] * 2)
        pending = Pending(twice, 0, 0.0)
        pending.add(twice, 77)
        made = pending.encode("none")
        await put(provider, made)
        flat.add(Segment(made.name, 0, 5000, 0, 0, made.about.keys))
        fetcher = Fetcher(provider, TieredSettings(), flat.has)
        reader = Reader(fetcher, LoopShare(lambda: 0))
        hits = await query([(flat, range(9))], fetcher, reader, "k", (0, 5000), 5)
        assert [one.offset for one in hits] == [1, 0]
        await fetcher.close()

    asyncio.run(main())
