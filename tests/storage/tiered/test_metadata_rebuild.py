"""Metadata are made again from what the provider has."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.storage.api import LogDamagedError
from ropeway.storage.tiered.dispatcher import POSITION
from ropeway.storage.tiered.memory import MemoryProvider
from ropeway.storage.tiered.metadata import Metadata
from ropeway.storage.tiered.metadata_rebuild import rebuild
from tests.storage.tiered.segments import IDENTITY, encoded, put


def test_what_counts_is_sealed_and_the_rest_is_to_go(tmp_path):
    async def main():
        provider = MemoryProvider()
        await put(provider, encoded(["a"], 0))
        large = encoded(["a", "b"], 0)
        await put(provider, large)
        torn = await put(provider, encoded(["c"], 2))
        del provider.objects[torn.object("index")]
        metadata = Metadata(tmp_path)
        assert await rebuild(metadata, provider) == 1
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
            await rebuild(metadata, provider)
        metadata.close()

    asyncio.run(main())
