"""Retention: dropping the oldest segments, by age and by the size of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.directories import sync_directory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ropeway.storage.file.segment import Segment


class Expired(Struct, frozen=True):
    """What one round of retention dropped."""

    segments: int
    bytes: int


def outlived(
    segments: Sequence[Segment],
    now_ms: int,
    retention_ms: int | None,
    retention_bytes: int | None,
    kept_ms: Mapping[int, int],
    needed: Mapping[int, int],
    floors: Mapping[int, int],
    keep_from: int | None = None,
) -> list[Segment]:
    """The oldest segments, as many as have to go; never the last one.

    One that has records of a partition that is kept for longer stays, and those behind
    it, too. `kept_ms` says for how long, by the partition's ordinal; and `needed`, from
    which offset on its records are kept in any case. One whose records are all below
    the `floors` of their partitions goes at any age. Nothing goes that reaches past the
    position `keep_from`.

    Their age counts from when they were written, by this machine's clock: store
    times are the callers', and one from the future would keep everything for ever.
    """
    total = sum(segment.written for segment in segments)
    old: list[Segment] = []
    for segment in segments[:-1]:
        aged = retention_ms is not None and segment.newest_ms < now_ms - retention_ms
        large = retention_bytes is not None and total > retention_bytes
        if keep_from is not None and segment.end > keep_from:
            break
        if _is_trimmed(segment, floors):
            old.append(segment)
            total -= segment.written
            continue
        if not (aged or large) or any(
            segment.newest_ms >= now_ms - least_ms and segment.index.span(ordinal)
            for ordinal, least_ms in kept_ms.items()
        ):
            break
        if any(_has_after(segment, *one) for one in needed.items()):
            break
        old.append(segment)
        total -= segment.written
    return old


def _is_trimmed(segment: Segment, floors: Mapping[int, int]) -> bool:
    """Whether all records of a segment are below the floors of their partitions."""
    return bool(floors) and not any(
        _has_after(segment, ordinal, floors.get(ordinal, 0))
        for ordinal in segment.index.ordinals()
    )


def _has_after(segment: Segment, ordinal: int, offset: int) -> bool:
    """Whether a segment has records of a partition from an offset on."""
    span = segment.index.span(ordinal)
    return span is not None and offset < span.base_offset + span.records


def floors(old: Sequence[Segment], kept: Sequence[Segment]) -> dict[int, int]:
    """Ends of the partitions that will have no record left, by ordinal."""
    ends: dict[int, int] = {}
    for segment in old:
        for ordinal in segment.index.ordinals():
            if not any(other.index.span(ordinal) for other in kept):
                span = segment.index.span(ordinal)
                assert span is not None
                ends[ordinal] = span.base_offset + span.records
    return ends


def unlink(old: Sequence[Segment]) -> None:
    """Delete the files, oldest first, each index after its segment.

    An index without a segment is never looked at; a segment without an index would
    be scanned by the next start. A name is gone for good before the next one goes: a
    power cut could bring an older one back, and leave a hole behind it.
    """
    for number, segment in enumerate(old):
        if number:
            sync_directory(segment.path.parent)
        segment.path.unlink(missing_ok=True)
        segment.index_path.unlink(missing_ok=True)
