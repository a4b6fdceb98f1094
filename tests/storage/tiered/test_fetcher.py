"""What was fetched is kept within bounds, and what will be read is fetched ahead."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.common.slow_reads import NOTED
from ropeway.storage.tiered.fetcher import INDEX, KEYS, Fetcher, GoneError, MissingError
from ropeway.storage.tiered.tier_config import BLOCK_BYTES, TieredSettings
from ropeway.storage.tiered.tier_partition import Segment
from tests.storage.tiered.segments import encoded, put
from tests.storage.tiered.tiers import Faulty, fails, until

SETTINGS = TieredSettings(cache_bytes=8 * BLOCK_BYTES, read_ahead_bytes=4 * BLOCK_BYTES)


async def segment_of(provider, blocks, base=0):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ropeway.storage.tiered.pending_segment.BLOCK_BYTES", 8)
        made = encoded(["abcd"] * blocks, base)
    await put(provider, made)
    provider.asked.clear()
    return Segment(made.name, 0, 0, 0, 0, blocks)


async def no_time(_seconds):
    pass


def test_what_is_missing_is_fetched_once_for_all_who_want_it():
    async def main():
        provider = Faulty()
        segment = await segment_of(provider, 3)
        fetcher = Fetcher(provider, SETTINGS, lambda _: True)
        with pytest.raises(MissingError) as missing:
            fetcher.index(segment)
        await asyncio.gather(*(fetcher.fetch(missing.value) for _ in range(5)))
        assert fetcher.index(segment).blocks == 3
        await fetcher.fetch(MissingError(segment, 1))
        await fetcher.fetch(MissingError(segment, KEYS))
        assert bytes(fetcher.block(segment, 1).data[4:]) == b"abcd"
        assert len(fetcher.keys(segment)) == 3
        assert len(provider.asked) == 3
        await fetcher.close()

    asyncio.run(main())


def test_what_somebody_waited_for_is_noted_for_who_wants_to_know():
    async def main():
        provider = Faulty()
        segment = await segment_of(provider, 3)
        fetcher = Fetcher(provider, SETTINGS, lambda _: True)
        noted = []
        token = NOTED.set(noted)
        await fetcher.fetch(MissingError(segment, 1))
        NOTED.reset(token)
        await fetcher.fetch(MissingError(segment, 2))
        (read,) = noted
        assert read.place == segment.name.object("data")
        assert 0 < read.began_ns <= read.ended_ns
        await fetcher.close()

    asyncio.run(main())


def test_the_longer_somebody_reads_on_the_further_ahead_is_fetched():
    async def main():
        provider = Faulty()
        segment, after = (
            await segment_of(provider, 20),
            await segment_of(provider, 2, 20),
        )
        fetcher = Fetcher(provider, SETTINGS, lambda _: True)
        await fetcher.fetch(MissingError(segment, 0))
        fetched = []
        for number in range(4):
            fetcher.read_ahead(segment, number, None)
            await until(lambda: not fetcher.coming)
            fetched.append(sum(what == "get" for what, _ in provider.asked) - 2)
        # 1, 2, 4 blocks ahead, and no more than four.
        assert fetched == [1, 3, 6, 7]
        fetcher.read_ahead(segment, 19, after)
        await until(lambda: not fetcher.coming)
        assert fetcher.block(after, 0).places == [0, 8]
        await fetcher.close()

    asyncio.run(main())


def test_memory_is_bounded_and_what_was_used_last_stays():
    async def main():
        provider = Faulty()
        segments = [await segment_of(provider, 1, base) for base in range(40)]
        size = len(provider.objects[segments[0].name.object("index")])
        fetcher = Fetcher(provider, SETTINGS, lambda _: True)
        fetcher.limit = 10 * size
        for segment in segments:
            await fetcher.fetch(MissingError(segment, INDEX))
            assert fetcher.bytes <= 10 * size
            fetcher.index(segments[0])
        with pytest.raises(MissingError):
            fetcher.index(segments[20])
        fetcher.index(segments[39])
        await fetcher.close()

    asyncio.run(main())


def test_no_more_requests_than_allowed_are_on_their_way():
    async def main():
        here = most = 0

        async def slow():
            nonlocal here, most
            here += 1
            most = max(most, here)
            await asyncio.sleep(0)
            here -= 1

        provider = Faulty()
        segment = await segment_of(provider, 30)
        provider.fault = lambda what, _: slow() if what == "get" else None
        fetcher = Fetcher(provider, TieredSettings(fetches=3), lambda _: True)
        await asyncio.gather(
            *(fetcher.fetch(MissingError(segment, number)) for number in range(30))
        )
        assert 1 < most <= 3
        await fetcher.close()

    asyncio.run(main())


def test_what_is_gone_is_told_from_what_was_lost():
    async def main():
        provider = Faulty(fails("get", times=2))
        segment = await segment_of(provider, 1)
        fetcher = Fetcher(provider, SETTINGS, lambda _: False, no_time)
        await fetcher.fetch(MissingError(segment, INDEX))
        provider.objects.clear()
        with pytest.raises(GoneError):
            await fetcher.fetch(MissingError(segment, 0))
        await fetcher.close()

    asyncio.run(main())


def test_a_block_counts_as_what_it_takes_inflated():
    async def main():
        provider = Faulty()
        made = encoded(["x" * (BLOCK_BYTES - 100)] * 40, compression="zstd")
        await put(provider, made)
        segment = Segment(made.name, 0, 0, 0, 0, 40)
        fetcher = Fetcher(provider, SETTINGS, lambda _: True)
        for number in range(40):
            await fetcher.fetch(MissingError(segment, number))
            held = [one for one in fetcher._kept.values() if hasattr(one[0], "data")]
            taken = sum(len(block.data) for block, _ in held)
            assert taken <= fetcher.bytes <= SETTINGS.cache_bytes
        await fetcher.close()

    asyncio.run(main())
