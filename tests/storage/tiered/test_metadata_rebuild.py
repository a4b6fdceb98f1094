"""Metadata are made again from what the provider has."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.storage.api import LogDamagedError
from ropeway.storage.tiered.api import ObjectMissingError
from ropeway.storage.tiered.dispatcher import POSITION
from ropeway.storage.tiered.memory import MemoryProvider
from ropeway.storage.tiered.metadata import Metadata
from ropeway.storage.tiered.metadata_rebuild import rebuild
from tests.storage.tiered.segments import IDENTITY, encoded, put


def all_of_it(_name):
    return 0


def test_what_counts_is_sealed_and_the_rest_is_to_go(tmp_path):
    async def main():
        provider = MemoryProvider()
        await put(provider, encoded(["a"], 0))
        large = encoded(["a", "b"], 0)
        await put(provider, large)
        torn = await put(provider, encoded(["c"], 2))
        del provider.objects[torn.object("index")]
        metadata = Metadata(tmp_path)
        assert await rebuild(metadata, provider, all_of_it) == 1
        found = {
            (one.base, one.end): (one, how)
            for one, how in metadata.iterate_file_segment(IDENTITY)
        }
        assert {at: how for at, (_, how) in found.items()} == {
            (0, 1): "expired",
            (0, 2): "sealed",
            (2, 3): "expired",
        }
        segment, about = found[0, 2][0], large.about
        assert segment[1:] == (
            *(about.least_ms, about.most_ms, about.written_ms),
            *(about.data_bytes, about.keys),
        )
        assert metadata.get_state(POSITION) == "0"
        metadata.close()

    asyncio.run(main())


def test_a_damaged_index_is_named(tmp_path):
    async def main():
        provider = MemoryProvider()
        name = await put(provider, encoded(["a"]))
        provider.objects[name.object("index")] += b"!"
        metadata = Metadata(tmp_path)
        with pytest.raises(LogDamagedError, match=r"\.index: .* restore"):
            await rebuild(metadata, provider, all_of_it)
        metadata.close()

    asyncio.run(main())


class OldListing(MemoryProvider):
    """A provider whose listing is from before objects were put."""

    def __init__(self, *left_out: str) -> None:
        super().__init__()
        self.left_out = left_out

    async def names(self, prefix):
        async for name, size in super().names(prefix):
            if name not in self.left_out:
                yield name, size


def test_a_segment_whose_index_an_old_listing_does_not_have_counts(tmp_path):
    async def main():
        made = encoded(["a"])
        provider = OldListing(made.name.object("index"))
        await put(provider, made)
        metadata = Metadata(tmp_path)
        assert await rebuild(metadata, provider, all_of_it) == 1
        ((one, how),) = metadata.iterate_file_segment(IDENTITY)
        assert (one.name, how) == (made.name, "sealed")
        metadata.close()

    asyncio.run(main())


def test_a_segment_that_an_old_listing_still_has_is_an_error_and_changes_nothing(
    tmp_path,
):
    async def main():
        provider = MemoryProvider()
        name = await put(provider, encoded(["a"]))
        listing = dict(provider.objects)
        del provider.objects[name.object("index")]

        async def names(_prefix):
            for each, data in listing.items():
                yield each, len(data)

        provider.names = names
        metadata = Metadata(tmp_path)
        with pytest.raises(ObjectMissingError):
            await rebuild(metadata, provider, all_of_it)
        assert metadata.get_state(POSITION) is None
        metadata.close()

    asyncio.run(main())


SEGMENTS = [(0, 2), (2, 5), (5, 6)]


async def rebuilt(path, left_out, kept_from, **how):
    """What is known of a tier of three segments, whose listing lacks one of them."""
    made = [encoded(["x"] * (end - base), base) for base, end in SEGMENTS]
    name = made[left_out].name
    provider = OldListing(*(name.object(part) for part in ("data", "keys", "index")))
    for one in made:
        await put(provider, one)
    metadata = Metadata(path)
    try:
        await rebuild(metadata, provider, lambda _: kept_from, **how)
        return [(one.base, one.end) for one, _ in metadata.iterate_file_segment()]
    finally:
        assert metadata.get_state(POSITION) in ("0", None)
        if metadata.get_state(POSITION) is None:
            assert list(metadata.iterate_topic()) == []
        metadata.close()


@pytest.mark.parametrize(
    ("left_out", "kept_from", "lost"),
    [
        (1, 6, "offsets 2 to 4"),
        (1, 9, "offsets 2 to 4"),
        (1, 3, "offsets 2 to 2"),
        (2, 6, "offsets 5 to 5"),
    ],
)
def test_a_segment_that_an_old_listing_lacks_whole_is_an_error_and_no_gap(
    tmp_path, left_out, kept_from, lost
):
    wanted = f"{lost} of partition 3 of topic orders, and the log has deleted them"
    with pytest.raises(LogDamagedError, match=wanted):
        asyncio.run(rebuilt(tmp_path, left_out, kept_from))


@pytest.mark.parametrize(("left_out", "kept_from"), [(1, 2), (1, 0), (2, 5), (2, None)])
def test_what_the_log_has_or_deleted_with_its_topic_is_not_missed(
    tmp_path, left_out, kept_from
):
    found = asyncio.run(rebuilt(tmp_path, left_out, kept_from))
    assert found == [one for at, one in enumerate(SEGMENTS) if at != left_out]


def test_messages_that_are_nowhere_may_be_given_up(tmp_path):
    found = asyncio.run(rebuilt(tmp_path, 1, 6, skip=True))
    assert found == [SEGMENTS[0], SEGMENTS[2]]
