"""Segments are put and taken away in an order that leaves nothing half done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.storage.tiered.api import ProviderError
from ropeway.storage.tiered.metadata import Metadata
from ropeway.storage.tiered.throttle import Throttle
from ropeway.storage.tiered.tier_index import TierIndex
from ropeway.storage.tiered.tier_partition import Segment
from tests.storage.tiered.segments import IDENTITY, encoded
from tests.storage.tiered.tiers import Faulty, fails

if TYPE_CHECKING:
    from pathlib import Path


def shelf_of(directory: Path, provider: Faulty) -> TierIndex:
    return TierIndex(provider, Metadata(directory), Throttle(None, lambda: 0.0))


def parts(provider: Faulty, wanted: str) -> list[str]:
    return [name.rpartition(".")[2] for what, name in provider.asked if what == wanted]


def test_data_goes_up_before_its_index_and_the_index_goes_first(tmp_path):
    async def main():
        provider = Faulty()
        shelf = shelf_of(tmp_path, provider)
        segment = await shelf.put(encoded(["a"]))
        assert parts(provider, "put") == ["data", "keys", "index"]
        await shelf.expire(segment)
        assert parts(provider, "delete") == ["index", "keys", "data"]
        assert provider.objects == {}
        assert shelf.flats[IDENTITY].segments == []
        await shelf.close()

    asyncio.run(main())


def test_what_cannot_be_deleted_is_tried_again_and_no_longer_read(tmp_path):
    async def main():
        provider = Faulty()
        shelf = shelf_of(tmp_path, provider)
        segment = await shelf.put(encoded(["a"]))
        provider.fault = fails("delete", part="data")
        with pytest.raises(ProviderError):
            await shelf.expire(segment)
        assert shelf.flats[IDENTITY].segments == []
        await shelf.close()
        # Another process goes on with it.
        provider.fault = lambda _what, _name: None
        shelf = shelf_of(tmp_path, provider)
        assert shelf.flats[IDENTITY].segments == []
        await shelf.settle()
        assert provider.objects == {}
        await shelf.close()

    asyncio.run(main())


def test_a_segment_whose_index_was_put_is_taken_over_unless_others_have_it(tmp_path):
    async def main():
        provider = Faulty()
        shelf = shelf_of(tmp_path, provider)
        whole, double = encoded(["a", "b"], 0), encoded(["b"], 1)
        for made in (whole, double):
            about = made.about
            await shelf.put(made)
            segment = Segment(
                *(made.name, about.least_ms, about.most_ms, about.written_ms),
                *(about.data_bytes, about.keys),
            )
            shelf.metadata.update_file_segment(segment, "new")
        await shelf.close()
        shelf = shelf_of(tmp_path, provider)
        await shelf.settle()
        (flat,) = shelf.flats.values()
        kept = [(one.base, one.end) for one in flat.segments]
        assert kept in ([(0, 2)], [(1, 2)])
        assert sum(name.endswith("index") for name in provider.objects) == 1
        await shelf.close()

    asyncio.run(main())


def test_a_deleted_partition_leaves_nothing(tmp_path):
    async def main():
        provider = Faulty()
        shelf = shelf_of(tmp_path, provider)
        for at in range(3):
            await shelf.put(encoded(["a"], at))
        await shelf.doom({IDENTITY, 999})
        await shelf.close()
        shelf = shelf_of(tmp_path, provider)
        await shelf.settle()
        assert (provider.objects, shelf.flats) == ({}, {})
        assert list(shelf.metadata.iterate_topic()) == []
        await shelf.close()

    asyncio.run(main())
