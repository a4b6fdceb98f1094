"""Keys are found in many segments, newest first, and no more is fetched than needed."""

from __future__ import annotations

import asyncio

from storage.tiered.fetcher import Fetcher
from storage.tiered.flat import Flat, Segment
from storage.tiered.loop_share import LoopShare
from storage.tiered.query import query
from storage.tiered.reader import Reader
from storage.tiered.settings import TieredSettings
from tests.storage.tiered.segments import IDENTITY, NUMBER, TOPIC, encoded, put
from tests.storage.tiered.tiers import Faulty


def test_the_newest_are_found_first_and_older_segments_left_alone():
    async def main():
        provider, flat = Faulty(), Flat(TOPIC, NUMBER, IDENTITY)
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
            hits = await query([(flat, end)], fetcher, reader, key, times_ms, count)
            return [one.offset for one in hits]

        assert await found("9", (0, 5000), 1) == [19]
        assert len({name for _, name in provider.asked}) == 3
        assert await found("k", (0, 5000), 3) == [18, 16, 14]
        assert await found("k", (0, 5000), 3, end=5) == [4, 2, 0]
        assert await found("3", (0, 5000), 5) == [7]
        assert await found("3", (0, 999), 5) == []
        assert await found("absent", (0, 5000), 5) == []
        await fetcher.close()

    asyncio.run(main())
