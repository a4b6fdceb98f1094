"""Records collect by partition, and become segments when they are much, many or old."""

from __future__ import annotations

import asyncio
import random

import msgspec
import pytest

from ropeway.common.throttle import Throttle
from ropeway.storage.pace import Pace, WhatIsLeft
from ropeway.storage.replication import Stretch
from ropeway.storage.tiered.dispatcher import POSITION, Dispatcher, part_of
from ropeway.storage.tiered.memory import MemoryProvider
from ropeway.storage.tiered.metadata import Metadata
from ropeway.storage.tiered.tier_config import TieredSettings
from ropeway.storage.tiered.tier_index import TierIndex
from tests.storage.tiered.segments import IDENTITY, run

SETTINGS = TieredSettings(
    commit_records=10, commit_bytes=1000, commit_ms=1000, backfill=True
)


class Written:
    """A log that has these runs, each at a position of its own."""

    def __init__(self, runs):
        self.runs = runs

    async def follow(self, position, _max_bytes):
        if position >= len(self.runs):
            return Stretch(position, 0, [])
        return Stretch(position + 1, 50 + position, [self.runs[position]])

    @property
    def written_to(self):
        return len(self.runs)


class Bench:
    """A dispatcher over such a log, with a clock of its own."""

    def __init__(self, directory, runs, settings=SETTINGS, wants=lambda _: True):
        self.now_s = 0.0
        self.provider = MemoryProvider()
        self.tier_index = TierIndex(
            self.provider, Metadata(directory), Throttle(None, lambda: 0.0)
        )
        self.dispatcher = Dispatcher(
            Written(runs),
            self.tier_index,
            settings,
            wants,
            lambda: self.now_s,
            Pace(WhatIsLeft()),
        )

    def segments(self):
        flat = self.tier_index.flats.get(IDENTITY)
        return [(one.base, one.end) for one in flat.segments] if flat else []

    async def rounds(self):
        while await self.dispatcher.round():
            pass


def test_a_segment_is_made_of_so_many_records_or_bytes(tmp_path):
    async def main():
        runs = [run(["a"] * 4, 4 * at) for at in range(5)]
        bench = Bench(tmp_path, [*runs, run(["b" * 500], 20), run(["b" * 500], 21)])
        await bench.rounds()
        assert bench.segments() == [(0, 10), (10, 20), (20, 22)]
        await bench.tier_index.close()

    asyncio.run(main())


def test_what_waits_for_long_becomes_a_segment(tmp_path):
    async def main():
        bench = Bench(tmp_path, [run(["a"], 0), run(["a"], 1)])
        await bench.rounds()
        assert bench.segments() == []
        assert bench.dispatcher.safe_position == 0
        bench.now_s = 1.0
        await bench.rounds()
        assert bench.segments() == [(0, 2)]
        assert bench.dispatcher.safe_position == 2
        assert bench.tier_index.metadata.get_state(POSITION) == "2"
        await bench.tier_index.close()

    asyncio.run(main())


def test_a_restart_begins_with_the_smallest_position_that_is_not_in_the_tier(tmp_path):
    async def main():
        other = run(["x"] * 9, 0)._replace(identity=7, number=4)
        runs = [run(["a"] * 10, 0), other, run(["a"] * 10, 10), run(["a"] * 3, 20)]
        bench = Bench(tmp_path, runs)
        await bench.rounds()
        assert bench.segments() == [(0, 10), (10, 20)]
        assert bench.dispatcher.safe_position == 1
        await bench.tier_index.close()
        objects = bench.provider.objects
        bench = Bench(tmp_path, runs)
        bench.provider.objects.update(objects)
        assert bench.dispatcher.position == 1
        await bench.dispatcher.all()
        assert bench.segments() == [(0, 10), (10, 20), (20, 23)]
        assert bench.tier_index.flats[7].end == 9
        await bench.tier_index.close()

    asyncio.run(main())


def test_a_gap_in_the_log_is_a_gap_between_segments(tmp_path):
    async def main():
        bench = Bench(tmp_path, [run(["a"], 0), run(["a"], 5), run(["a"], 6)])
        await bench.rounds()
        await bench.dispatcher.all()
        assert bench.segments() == [(0, 1), (5, 7)]
        await bench.tier_index.close()

    asyncio.run(main())


def test_topics_that_are_not_wanted_hold_up_nothing(tmp_path):
    async def main():
        bench = Bench(tmp_path, [run(["a"], 0)], wants=lambda _: False)
        await bench.rounds()
        assert bench.segments() == []
        assert bench.dispatcher.safe_position == 1
        await bench.tier_index.close()

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_there_already_all_is_there_in_the_end(tmp_path, seed):
    chance = random.Random(seed)

    async def main():
        runs, at = [], 0
        while at < 60:
            count = chance.randint(1, 9)
            runs.append(run([f"{at + more}" for more in range(count)], at))
            at += count
        settings = msgspec.structs.replace(
            SETTINGS, commit_records=chance.randint(1, 9)
        )
        bench = Bench(tmp_path, runs, settings)
        await bench.dispatcher.all()
        flat = bench.tier_index.flats[IDENTITY]
        for segment in chance.sample(flat.segments, len(flat.segments) // 2):
            await bench.tier_index.expire(segment)
        bench.tier_index.metadata.put_state("backfill", "asked")
        await bench.dispatcher.all()
        assert flat.uncovered(0, at) == (at, at)
        ends = [0, *(one.end for one in flat.segments)]
        assert [one.base for one in flat.segments] == ends[:-1]
        await bench.tier_index.close()

    asyncio.run(main())


def test_a_part_of_a_run_has_its_own_records_and_keys():
    whole = run(["a", "bb", "ccc", "dddd"], 10)
    part = part_of(whole, 11, 13)
    assert part.base_offset == 11
    assert bytes(part.data) == bytes(run(["bb", "ccc"]).data)
    assert len(part.keys) == 16
    assert part_of(whole, 10, 14) is whole
