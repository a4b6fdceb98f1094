"""Small neighbours become one segment with the same records."""

from __future__ import annotations

import asyncio
from itertools import chain

import msgspec
import pytest

from ropeway.storage.api import LogDamagedError
from ropeway.storage.sealed.index import decode_index
from ropeway.storage.sealed.layout import decode_keys, records_with
from ropeway.storage.tiered.memory import MemoryProvider
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.segment_merge import mergeable, merged
from ropeway.storage.tiered.tier_config import TieredSettings
from ropeway.storage.tiered.tier_partition import Segment, TierPartition
from tests.storage.tiered.segments import encoded, put, records
from tests.storage.tiered.test_pending_segment import hash_of

SETTINGS = TieredSettings(segment_bytes=10_000, merge_count=3)


def flat(*sizes, gaps=()):
    made = TierPartition("t", 0, 1)
    for at, size in enumerate(sizes):
        base = 2 * at
        end = base + (1 if at in gaps else 2)
        made.add(Segment(SegmentName("t", 0, 1, base, end), 0, 0, 0, size, 0))
    return made


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ([100, 110, 120], [0, 2, 4]),
        ([100, 110], []),
        ([5000, 4200], [0, 2]),
        ([5000, 5001], []),
        ([9000, 100, 110, 120, 5], [2, 4, 6]),
        ([9000, 100, 9000, 100, 9000, 100], []),
        ([], []),
    ],
)
def test_neighbours_of_one_size_are_put_together_when_they_are_enough(sizes, found):
    assert [one.base for one in mergeable(flat(*sizes), SETTINGS)] == found


def test_what_was_uploaded_because_it_was_much_is_not_copied_again():
    settings = msgspec.structs.replace(SETTINGS, commit_bytes=200)
    found = mergeable(flat(100, 90, 90, 120, 80, 80, 80, 100), settings)
    assert [one.base for one in found] == [8, 10, 12]


def test_nothing_is_put_together_over_a_gap():
    assert mergeable(flat(100, 100, 100, 100, gaps=[1]), SETTINGS) == []


def test_a_byte_is_copied_once_for_each_factor_that_segments_grow():
    made, copied = TierPartition("t", 0, 1), 0
    settings = msgspec.structs.replace(
        TieredSettings(), segment_bytes=1 << 30, merge_count=16
    )
    for at in range(16**3):
        made.add(Segment(SegmentName("t", 0, 1, at, at + 1), 0, 0, 0, 1000, 0))
        while run := mergeable(made, settings):
            size = sum(one.bytes for one in run)
            copied += size
            name = SegmentName("t", 0, 1, run[0].base, run[-1].end)
            made.add(Segment(name, 0, 0, 0, size, 0))
    assert copied <= 3 * 16**3 * 1000
    assert len(made.segments) < 3 * 16


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_the_new_segment_has_all_records_times_tags_and_keys(compression):
    async def main():
        provider = MemoryProvider()
        flat, texts = TierPartition("orders", 3, 1), []
        for number in range(4):
            some = [f"{number}-{at}" for at in range(5)]
            made = encoded(some, len(texts), compression)
            texts += some
            await put(provider, made)
            flat.add(Segment(made.name, 0, 0, 0, 0, 0))
        one = await merged(flat.segments, provider)
        assert (one.name.base, one.name.end) == (0, 20)
        await put(provider, one)
        found = [
            bytes(data[4:]).decode() async for *_, data in records(provider, one.name)
        ]
        assert found == texts
        index = decode_index(one.index_object)
        columns = [index.columns(number) for number in range(index.blocks)]
        assert [tag for some in columns for tag in some.tags] == [-3] * 20
        times = [time_ms for some in columns for time_ms in some.times]
        assert times == [1000 + at % 5 for at in range(20)]
        keys = decode_keys(one.keys, index.about)
        for number, text in enumerate(texts):
            found = chain.from_iterable(records_with(keys, hash_of(text)))
            assert [*found] == [number]

    asyncio.run(main())


def test_segments_compressed_otherwise_are_left_for_later():
    async def main():
        provider = MemoryProvider()
        made = [
            encoded(["a"], 0),
            encoded(["b"], 1),
            encoded(["c"], 2, "zstd"),
        ]
        for one in made:
            await put(provider, one)
        run = [Segment(one.name, 0, 0, 0, 0, 0) for one in made]
        assert (await merged(run, provider)).name.end == 2

    asyncio.run(main())


@pytest.mark.parametrize("part", ["data", "keys", "index"])
def test_damage_is_not_copied(part):
    async def main():
        provider = MemoryProvider()
        made = encoded(["a"])
        name = (await put(provider, made)).object(part)
        data = provider.objects[name]
        provider.objects[name] = data[:-1] + bytes([data[-1] ^ 1])
        with pytest.raises(LogDamagedError, match=rf"\.{part}: .*restore"):
            await merged([Segment(made.name, 0, 0, 0, 0, 0)], provider)

    asyncio.run(main())
