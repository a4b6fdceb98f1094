"""Segments are put and taken away in an order that leaves nothing half done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.common.throttle import Throttle
from ropeway.storage.tiered.api import ProviderError
from ropeway.storage.tiered.metadata import Metadata
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
        tier_index = shelf_of(tmp_path, provider)
        segment = await tier_index.put(encoded(["a"]))
        assert parts(provider, "put") == ["data", "keys", "index"]
        await tier_index.expire(segment)
        assert parts(provider, "delete") == ["index", "keys", "data"]
        assert provider.objects == {}
        assert tier_index.flats[IDENTITY].segments == []
        await tier_index.close()

    asyncio.run(main())


def test_what_cannot_be_deleted_is_tried_again_and_no_longer_read(tmp_path):
    async def main():
        provider = Faulty()
        tier_index = shelf_of(tmp_path, provider)
        segment = await tier_index.put(encoded(["a"]))
        provider.fault = fails("delete", part="data")
        with pytest.raises(ProviderError):
            await tier_index.expire(segment)
        assert tier_index.flats[IDENTITY].segments == []
        await tier_index.close()
        # Another process goes on with it.
        provider.fault = lambda _what, _name: None
        tier_index = shelf_of(tmp_path, provider)
        assert tier_index.flats[IDENTITY].segments == []
        await tier_index.settle()
        assert provider.objects == {}
        await tier_index.close()

    asyncio.run(main())


def test_a_segment_whose_index_was_put_is_taken_over_unless_others_have_it(tmp_path):
    async def main():
        provider = Faulty()
        tier_index = shelf_of(tmp_path, provider)
        whole, double = encoded(["a", "b"], 0), encoded(["b"], 1)
        for made in (whole, double):
            about = made.about
            await tier_index.put(made)
            segment = Segment(
                *(made.name, about.least_ms, about.most_ms, about.written_ms),
                *(about.data_bytes, about.keys),
            )
            tier_index.metadata.update_file_segment(segment, "new")
        await tier_index.close()
        tier_index = shelf_of(tmp_path, provider)
        await tier_index.settle()
        (flat,) = tier_index.flats.values()
        kept = [(one.base, one.end) for one in flat.segments]
        assert kept in ([(0, 2)], [(1, 2)])
        assert sum(name.endswith("index") for name in provider.objects) == 1
        await tier_index.close()

    asyncio.run(main())


def test_a_deleted_partition_leaves_nothing(tmp_path):
    async def main():
        provider = Faulty()
        tier_index = shelf_of(tmp_path, provider)
        for at in range(3):
            await tier_index.put(encoded(["a"], at))
        await tier_index.doom({IDENTITY, 999})
        await tier_index.close()
        tier_index = shelf_of(tmp_path, provider)
        await tier_index.settle()
        assert (provider.objects, tier_index.flats) == ({}, {})
        assert list(tier_index.metadata.iterate_topic()) == []
        await tier_index.close()

    asyncio.run(main())
