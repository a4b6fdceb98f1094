"""Checking everything that a tier has on its provider, without changing a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.api import LogError
from ropeway.storage.tiered import segment as segments
from ropeway.storage.tiered.listing import index_of, listed
from ropeway.storage.tiered.segment import SegmentError

if TYPE_CHECKING:
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.object_names import SegmentName


class Verified(Struct):
    """What a check of a tier came upon."""

    segments: int = 0
    records: int = 0
    bytes: int = 0
    left_over: int = 0
    """Segments that are half deleted, half put, or in a larger one too: harmless."""
    problems: list[str] = []
    """One line for each object that is not what was put."""


async def verify(provider: Provider, prefix: str = "") -> Verified:
    """Check every object below a prefix.

    Raises:
        ProviderError: The provider cannot be listed.
    """
    found = await listed(provider, prefix)
    report = Verified(bytes=found.bytes, left_over=len(found.covered) + len(found.torn))
    report.problems += [f"{name}: not an object of a tier" for name in found.foreign]
    for name in found.whole:
        report.segments += 1
        part = name.object("index")
        try:
            index = await index_of(provider, name)
            _verify_name(name, index)
            report.records += index.about.records
            part = name.object("data")
            await _verify_data(provider, name, index)
            if index.about.keys:
                part = name.object("keys")
                segments.decode_keys(await provider.get(part), index.about)
        except (SegmentError, LogError) as error:
            report.problems.append(f"{part}: {error}")
    return report


def _verify_name(name: SegmentName, index: segments.Index) -> None:
    if (index.about.base_offset, index.about.end) != (name.base, name.end):
        raise SegmentError("its name says other offsets than it does")


async def _verify_data(
    provider: Provider, name: SegmentName, index: segments.Index
) -> None:
    data = name.object("data")
    head = await provider.get(data, 0, segments.HEAD.size)
    segments.check_data_header(head, index.about)
    for number, block in enumerate(index.blocks):
        stored = await provider.get(data, index.places[number], block.stored_bytes)
        segments.open_block(index, number, stored)
