"""What the metadata say of a tier, also while a node runs with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.tiered.dispatcher import BACKFILL, FAILURE, PAUSED, POSITION, URL

if TYPE_CHECKING:
    from ropeway.storage.tiered.metadata import Metadata


class QueueStatus(Struct, frozen=True):
    """One partition in the tier."""

    topic: str
    reserve_hours: int | None
    """How long its segments are kept; None: as the settings say."""
    partition: int
    segments: int
    first: int
    end: int
    bytes: int
    deleted: bool


class Status(Struct, frozen=True):
    """All of a tier."""

    url: str
    position: int
    """Of the log; what was written before is in the tier."""
    paused: bool
    backfill: bool
    """Whether one was asked for and has not begun."""
    failure: str | None
    """Why the last upload failed."""
    queues: list[QueueStatus]


def status(metadata: Metadata) -> Status:
    """Gather what the metadata say."""
    reserve_ms = {row.topic: row.reserve_ms for row in metadata.iterate_topic()}
    queues = []
    for queue in metadata.iterate_queue():
        sealed = [
            segment
            for segment, its_status in metadata.iterate_file_segment(queue.identity)
            if its_status == "sealed"
        ]
        queues.append(
            QueueStatus(
                queue.topic,
                None if (ms := reserve_ms[queue.topic]) is None else ms // 3_600_000,
                queue.number,
                len(sealed),
                sealed[0].base if sealed else 0,
                sealed[-1].end if sealed else 0,
                sum(segment.bytes for segment in sealed),
                queue.status == "deleted",
            )
        )
    return Status(
        metadata.get_state(URL) or "",
        int(metadata.get_state(POSITION) or 0),
        metadata.get_state(PAUSED) is not None,
        metadata.get_state(BACKFILL) is not None,
        metadata.get_state(FAILURE),
        queues,
    )
