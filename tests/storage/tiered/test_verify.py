"""A check of a tier finds what is not as it was put, and changes nothing."""

from __future__ import annotations

import asyncio

import pytest

from ropeway.storage.tiered.memory import MemoryProvider
from ropeway.storage.tiered.verify import verify
from tests.storage.tiered.segments import encoded, put


def test_a_whole_tier_has_no_problem():
    async def main():
        provider = MemoryProvider()
        await put(provider, encoded(["a", "b"]))
        await put(provider, encoded(["c"], 2, "zstd"))
        found = await verify(provider)
        assert (found.segments, found.records, found.problems) == (2, 3, [])
        assert found.bytes == sum(map(len, provider.objects.values()))

    asyncio.run(main())


@pytest.mark.parametrize("part", ["data", "keys", "index"])
@pytest.mark.parametrize("how", ["altered", "missing"])
def test_what_is_wrong_is_named(part, how):
    async def main():
        provider = MemoryProvider()
        name = (await put(provider, encoded(["a", "b"]))).object(part)
        if how == "altered":
            data = provider.objects[name]
            provider.objects[name] = data[:-1] + bytes([data[-1] ^ 1])
        else:
            del provider.objects[name]
        before = dict(provider.objects)
        found = await verify(provider)
        if (part, how) == ("index", "missing"):
            assert (found.segments, found.left_over, found.problems) == (0, 1, [])
        else:
            (problem,) = found.problems
            assert problem.startswith(name)
        assert provider.objects == before

    asyncio.run(main())


def test_a_renamed_segment_and_foreign_objects_are_named():
    async def main():
        provider = MemoryProvider()
        name = await put(provider, encoded(["a", "b"]))
        for part in ("data", "keys", "index"):
            other = name._replace(base=5, end=7).object(part)
            provider.objects[other] = provider.objects.pop(name.object(part))
        provider.objects["x"] = b""
        found = await verify(provider)
        assert [one.partition(": ")[2] for one in found.problems] == [
            "not an object of a tier",
            "its name says another segment than it does",
        ]

    asyncio.run(main())
