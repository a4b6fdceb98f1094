"""Which segments of the tier are old enough to go, by the time a topic asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ropeway.storage.tiered.tier_partition import Segment, TierPartition


def outlived(
    flats: Iterable[TierPartition],
    now_ms: int,
    retention_ms: int | None,
    reserve_ms: Callable[[str], int | None],
    floor: Callable[[TierPartition], int] = lambda _: 0,
) -> list[Segment]:
    """The oldest segments of each partition, as far as they have to go.

    Their age counts from when the newest of their records was written, by the
    gateway's clock. One that is kept keeps all behind it, so no hole comes to be.

    Args:
        flats: All partitions.
        now_ms: This machine's time, in milliseconds since 1970.
        retention_ms: How long segments are kept where the topic does not say;
            None for ever.
        reserve_ms: How long by topic; None where it does not say.
        floor: Up to which offset a partition was trimmed.
    """
    old: list[Segment] = []
    for flat in flats:
        kept_ms = reserve_ms(flat.topic)
        if kept_ms is None:
            kept_ms = retention_ms
        trimmed = floor(flat)
        for segment in flat.segments:
            aged = kept_ms is not None and segment.written_ms < now_ms - kept_ms
            if not aged and segment.end > trimmed:
                break
            old.append(segment)
    return old
