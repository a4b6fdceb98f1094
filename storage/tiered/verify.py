"""Checking everything that a tier has on its provider, without changing a byte."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.sealed.layout import Whose
from ropeway.storage.sealed.verify import WrongPartError
from ropeway.storage.sealed.verify import verify as verify_segment
from ropeway.storage.tiered.listing import listed

if TYPE_CHECKING:
    from ropeway.storage.sealed.verify import Part
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
        try:
            index = await verify_segment(
                partial(_part, provider, name), Whose(*name[:3]), name.base, name.end
            )
            report.records += index.about.records
        except WrongPartError as error:
            report.problems.append(f"{name.object(error.part)}: {error}")
    return report


async def _part(
    provider: Provider,
    name: SegmentName,
    part: Part,
    start: int = 0,
    size: int | None = None,
) -> bytes:
    return await provider.get(name.object(part), start, size)
