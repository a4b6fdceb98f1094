"""What a provider has, by listing it: enough to read a tier without a gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.tiered import object_names
from ropeway.storage.tiered.object_names import SegmentName
from ropeway.storage.tiered.tier_partition import Segment, chosen, segment_of

if TYPE_CHECKING:
    from ropeway.storage.sealed.index import Index
    from ropeway.storage.tiered.api import Provider


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
            some = by_partition.setdefault(segment_name.identity, [])
            some.append(segment_of(segment_name))
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
    return name.opened(await provider.get(name.object("index")))
