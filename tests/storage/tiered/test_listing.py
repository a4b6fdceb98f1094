"""A tier is read by listing it, without a gateway."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.storage.tiered import object_names
from ropeway.storage.tiered.api import ObjectMissingError
from ropeway.storage.tiered.listing import listed
from ropeway.storage.tiered.memory import MemoryProvider
from tests.storage.tiered.segments import TOPIC, encoded, put, records


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_records_come_with_offsets_and_times(compression, monkeypatch):
    monkeypatch.setattr("ropeway.storage.tiered.pending_segment.BLOCK_BYTES", 20)

    async def main():
        provider = MemoryProvider()
        texts = [f"{at}" for at in range(20)]
        name = await put(provider, encoded(texts, 100, compression))
        found = [one async for one in records(provider, name)]
        assert [(at, ms, bytes(data[4:]).decode()) for at, ms, data in found] == [
            (100 + at, 1000 + at, text) for at, text in enumerate(texts)
        ]
        some = [at async for at, _, _ in records(provider, name, 105, 111)]
        assert some == [*range(105, 111)]
        assert [one async for one in records(provider, name, 120)] == []
        provider.objects.clear()
        with pytest.raises(ObjectMissingError):
            _ = [one async for one in records(provider, name)]

    asyncio.run(main())


def test_a_listing_tells_what_counts(monkeypatch):
    async def main():
        provider = MemoryProvider()
        small = [await put(provider, encoded(["a"], at)) for at in (0, 1)]
        large = await put(provider, encoded(["a", "a"], 0))
        torn = await put(provider, encoded(["a"], 9))
        del provider.objects[torn.object("index")]
        provider.objects["readme"] = b"?"
        found = await listed(provider)
        assert (found.whole, found.covered) == ([large], small)
        assert (found.torn, found.foreign) == ([torn], ["readme"])
        assert found.bytes == sum(map(len, provider.objects.values())) - 1
        assert (await listed(provider, object_names.topic_prefix(TOPIC))).whole == [
            large
        ]
        assert (await listed(provider, object_names.topic_prefix("other"))).whole == []

    asyncio.run(main())
