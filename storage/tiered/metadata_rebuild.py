"""Making the metadata again from what the provider has: after their file was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.api import LogDamagedError
from ropeway.storage.tiered.dispatcher import POSITION
from ropeway.storage.tiered.listing import index_of, listed
from ropeway.storage.tiered.segment import SegmentError
from ropeway.storage.tiered.tier_partition import Segment

if TYPE_CHECKING:
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.metadata import Metadata
    from ropeway.storage.tiered.object_names import SegmentName


async def rebuild(metadata: Metadata, provider: Provider) -> int:
    """Fill empty metadata; how many segments there are.

    The log is then gone over from its beginning; what the tier has is passed over.

    Raises:
        ProviderError: It cannot be listed or read.
        LogDamagedError: An index is not what was written.
    """
    found = await listed(provider)
    for name in found.whole:
        try:
            about = (await index_of(provider, name)).about
        except SegmentError as error:
            raise LogDamagedError(
                f"{provider.label}, object {name.object('index')}: {error}; restore "
                "the object, or delete it to go on without its messages"
            ) from error
        metadata.add_queue(*name[:3])
        metadata.update_file_segment(
            Segment(
                name,
                about.least_ms,
                about.most_ms,
                about.written_ms,
                about.data_bytes,
                about.keys,
            ),
            "sealed",
        )
    for name in (*found.covered, *found.torn):
        _remember(metadata, name)
    if found.whole:
        metadata.put_state(POSITION, "0")
    return len(found.whole)


def _remember(metadata: Metadata, name: SegmentName) -> None:
    """Have a segment that does not count taken away."""
    metadata.add_queue(*name[:3])
    metadata.update_file_segment(Segment(name, 0, 0, 0, 0, 0), "expired")
