"""Reading from a tier: limits, filters and times, over blocks and segments."""

from __future__ import annotations

import asyncio
import itertools
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.api import Filter
from ropeway.storage.tiered.fetcher import Fetcher
from ropeway.storage.tiered.loop_share import LoopShare
from ropeway.storage.tiered.memory import MemoryProvider
from ropeway.storage.tiered.reader import Reader, TierRead
from ropeway.storage.tiered.tier_config import TieredSettings
from ropeway.storage.tiered.tier_partition import Segment, TierPartition
from tests.storage.tiered.segments import encoded, put

TEXTS = ["a" * (at % 5) for at in range(40)]
CUTS = [0, 7, 8, 25, 40]


def texts_of(chunk):
    found = []
    for piece in chunk.data:
        at = 0
        while at < len(piece):
            (size,) = struct.unpack_from(">i", piece, at)
            found.append(bytes(piece[at + 4 : at + size]).decode())
            at += size
    assert len(found) == chunk.records
    return found


async def tier():
    """A partition of four segments with blocks of a few records."""
    provider, flat = MemoryProvider(), TierPartition("orders", 3, 1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ropeway.storage.tiered.pending_segment.BLOCK_BYTES", 30)
        for low, high in pairwise(CUTS):
            made = encoded(TEXTS[low:high], low)
            await put(provider, made)
            about = made.about
            flat.add(
                Segment(made.name, about.least_ms, about.most_ms, 0, 0, about.keys)
            )
    fetcher = Fetcher(provider, TieredSettings(), flat.has)
    return flat, fetcher, Reader(fetcher, LoopShare(lambda: 0))


@given(
    st.integers(-1, 41),
    st.integers(0, 40),
    st.integers(1, 12),
    st.integers(0, 80),
    st.none() | st.sets(st.integers(-4, 0)),
    st.booleans(),
    st.integers(1, 30),
)
def test_reads_find_what_one_by_one_would(
    offset, length, count, size, tags, picky, looks
):
    async def main():
        flat, fetcher, reader = await tier()
        end = min(max(offset, 0) + length, 40)
        accept = (lambda data: len(data) % 2 == 0) if picky else None
        wanted = Filter(tag_hashes=tags, accept=accept, looks=looks)
        asked = TierRead(flat, offset, end, (count, size), wanted)
        assert reader.read_now(asked) is None or max(offset, 0) >= end
        chunk = await reader.read(asked)
        expected, at, left = [], max(offset, 0) if offset < end else offset, size
        for _ in range(looks):
            if at >= end or len(expected) == count:
                break
            text = TEXTS[at]
            fits = (tags is None or -len(text) in tags) and (
                not picky or len(text) % 2 == 0
            )
            if fits and expected and 4 + len(text) > left:
                break
            if fits:
                expected.append(text)
                left -= 4 + len(text)
            at += 1
        assert (texts_of(chunk), chunk.next_offset) == (expected, at)
        if offset < end:
            again = reader.read_now(asked)
            assert again is not None
            assert (texts_of(again), again.next_offset) == (expected, at)
        await fetcher.close()

    asyncio.run(main())


def test_times_are_found_over_segments():
    async def main():
        flat, fetcher, reader = await tier()

        async def at(time_ms, *, upper, end=40):
            return await reader.offset_at(flat, time_ms, end, upper=upper)

        # Each segment begins at 1000 again: times go back where a clock did.
        assert await at(0, upper=False) == 0
        assert await at(1006, upper=False) == 6
        assert await at(1016, upper=False) == 24
        assert await at(1017, upper=False) is None
        assert await at(1016, upper=False, end=24) is None
        assert await at(999, upper=True) is None
        assert await at(1002, upper=True) == 27
        assert await at(1002, upper=True, end=27) == 26
        assert [await reader.store_time(flat, one) for one in (0, 7, 39, 40)] == [
            *(1000, 1000, 1014),
            None,
        ]
        await fetcher.close()

    asyncio.run(main())


def test_while_the_log_is_written_to_a_read_leaves_the_next_one_waiting():
    async def main():
        flat, fetcher, _ = await tier()
        written = itertools.count()
        reader = Reader(fetcher, LoopShare(lambda: next(written)))
        first = await reader.read(TierRead(flat, 0, 40, (100, 1000), None))
        assert reader.read_now(TierRead(flat, 0, 40, (100, 1000), None)) is None
        again = await reader.read(TierRead(flat, 0, 40, (100, 1000), None))
        assert texts_of(again) == texts_of(first) == TEXTS

    asyncio.run(main())
