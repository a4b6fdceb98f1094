"""What a provider has, by listing it: enough to read a tier without a gateway.

async for offset, store_ms, record in records(provider, name):
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.tiered import object_names
from ropeway.storage.tiered import segment as segments
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.tier_partition import Segment, chosen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.segment import Index


class Listing(Struct):
    """Objects below a prefix."""

    whole: list[SegmentName] = []
    """Segments that count, by partition and offset."""
    covered: list[SegmentName] = []
    """Those that have only what a larger one has, too."""
    torn: list[SegmentName] = []
    """Those without an index: their process ended while it put or deleted them."""
    foreign: list[str] = []
    """Names that are not ours."""
    bytes: int = 0


async def listed(provider: Provider, prefix: str = "") -> Listing:
    """List a tier, or the part of it below a prefix (`names.topic_prefix`).

    Raises:
        ProviderError: It cannot be listed.
    """
    found = Listing()
    parts: dict[SegmentName, set[str]] = {}
    async for name, size in provider.names(prefix):
        parsed = object_names.parse(name)
        if parsed is None:
            found.foreign.append(name)
            continue
        parts.setdefault(parsed[0], set()).add(parsed[1])
        found.bytes += size
    by_partition: dict[int, list[Segment]] = {}
    for segment_name, its_parts in parts.items():
        if "index" in its_parts:
            nothing_known = Segment(segment_name, 0, 0, 0, 0, 0)
            by_partition.setdefault(segment_name.identity, []).append(nothing_known)
        else:
            found.torn.append(segment_name)
    for some in by_partition.values():
        kept, covered = chosen(some)
        found.whole += [segment.name for segment in kept]
        found.covered += [segment.name for segment in covered]
    found.whole.sort()
    return found


async def index_of(provider: Provider, name: SegmentName) -> Index:
    """The index of a segment.

    Raises:
        ObjectMissingError: There is none.
        SegmentError: It is not what was written.
    """
    return segments.decode_index(await provider.get(name.object("index")))


async def records(
    provider: Provider, name: SegmentName, base: int = 0, end: int | None = None
) -> AsyncIterator[tuple[int, int, memoryview]]:
    """Records of a segment: offset, store time, the stored message as bytes.

    Args:
        provider: Has it.
        name: As `listed` has it.
        base: The first offset that is wanted.
        end: The first one that is not; None for all.

    Raises:
        ObjectMissingError: The segment is gone; list anew.
        SegmentError: It is not what was written.
    """
    index = await index_of(provider, name)
    offset = name.base
    last = name.end if end is None else min(end, name.end)
    for number, block in enumerate(index.blocks):
        after = offset + block.records
        if base < after and offset < last:
            stored = await provider.get(
                name.object("data"), index.places[number], block.stored_bytes
            )
            data = memoryview(segments.open_block(index, number, stored))
            first = offset - name.base
            sizes = index.sizes[first : first + block.records]
            places = [*accumulate(sizes, initial=0)]
            for at in range(max(base - offset, 0), min(last - offset, block.records)):
                yield (
                    offset + at,
                    index.times[first + at],
                    data[places[at] : places[at + 1]],
                )
        offset = after
