"""Making the metadata again from what the provider has: after their file was lost.

Law: what a listing lacks is never taken for gone. An object store may answer one from
before a segment was put, or from before its index was; so what has no index is asked
for, and messages that neither the listing nor the log has are an error.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import structlog

from ropeway.storage.api import LogDamagedError
from ropeway.storage.sealed.layout import SegmentError
from ropeway.storage.tiered.api import ObjectMissingError
from ropeway.storage.tiered.dispatcher import POSITION
from ropeway.storage.tiered.fetcher import damaged
from ropeway.storage.tiered.listing import index_of, listed
from ropeway.storage.tiered.tier_partition import segment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.listing import Listing
    from ropeway.storage.tiered.metadata import Metadata
    from ropeway.storage.tiered.object_names import SegmentName

    KeptFrom = Callable[[SegmentName], int | None]
    """The first offset that the log has of a segment's partition; None where it has not
    got that partition."""

log = structlog.get_logger(__name__)


async def rebuild(
    metadata: Metadata, provider: Provider, kept_from: KeptFrom, *, skip: bool = False
) -> int:
    """Fill empty metadata; how many segments there are.

    The log is then gone over from its beginning; what the tier has is passed over.

    Args:
        metadata: Is filled.
        provider: Is listed.
        kept_from: Tells what the log has of a segment's partition.
        skip: Go on without messages that neither tier nor log has.

    Raises:
        ProviderError: It cannot be listed or read.
        LogDamagedError: An index is not what was written; or messages between a
            segment and what comes after it are nowhere. Nothing is filled then.
    """
    found = await listed(provider)
    late = [name for name in found.torn if await _is_whole(provider, name, found)]
    whole = sorted([*found.whole, *late])
    for gap in _gaps(whole, kept_from):
        if not skip:
            raise LogDamagedError(
                f"{provider.label} has no segment with {gap}, and the log has deleted "
                "them: the listing may be an old one; start again later, restore the "
                'objects, or open with on_damage="skip" to go on without these messages'
            )
        log.error("tier goes on without messages", provider=provider.label, lost=gap)
    for name in whole:
        try:
            about = (await index_of(provider, name)).about
        except SegmentError as error:
            raise damaged(provider, name.object("index"), error) from error
        metadata.add_queue(*name[:3])
        metadata.update_file_segment(segment_of(name, about), "sealed")
    for name in (*found.covered, *(set(found.torn) - set(late))):
        _remember(metadata, name)
    if whole:
        metadata.put_state(POSITION, "0")
    return len(whole)


def _gaps(whole: list[SegmentName], kept_from: KeptFrom) -> Iterator[str]:
    """What is missing behind segments, up to the next one or to what the log has."""
    for _, group in groupby(whole, key=lambda name: name[:3]):
        names = list(group)
        first = kept_from(names[0])
        if first is None:
            continue
        starts = [name.base for name in names[1:] if name.base < first]
        for name, end in zip(names, [*starts, first], strict=False):
            if name.end < end:
                yield (
                    f"offsets {name.end} to {end - 1} of partition {name.number} of "
                    f"topic {name.topic}"
                )


async def _is_whole(provider: Provider, name: SegmentName, found: Listing) -> bool:
    """Whether a segment has an index that an old listing does not have.

    What has none is taken away, so that the object itself is asked for.
    """
    if any(
        one.identity == name.identity and one.base <= name.base and name.end <= one.end
        for one in found.whole
    ):
        return False
    try:
        await provider.get(name.object("index"), 0, 1)
    except ObjectMissingError:
        return False
    return True


def _remember(metadata: Metadata, name: SegmentName) -> None:
    """Have a segment that does not count taken away."""
    metadata.add_queue(*name[:3])
    metadata.update_file_segment(segment_of(name), "expired")
