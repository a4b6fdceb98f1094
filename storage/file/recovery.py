"""What an opening log does: find its true end, and indexes for all segments.

Sealed segments are known by their index files. Any other one is scanned, block by
block. A damaged place ends the log there, if nothing proves that it had been synced;
else it is damage in the middle, which is refused, or skipped where that is asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ropeway.common.system import allocate, sync_data
from ropeway.storage.api import LogDamagedError
from ropeway.storage.file import segment as files
from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.index import SealedIndex
from ropeway.storage.file.scan import Damage, blocks, mapped, nonzero_end
from ropeway.storage.file.segment import ActiveIndex, Segment
from ropeway.storage.file.segments import write_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ropeway.storage.file.catalog import Catalog


class Dropped(Struct, frozen=True):
    """Bytes that recovery cut off, and keeps in a file of their own."""

    position: int
    bytes: int
    file: str


class Recovery(Struct):
    """What opening a log came upon."""

    dropped: list[Dropped] = []
    """The torn end of the log: nothing in it was acknowledged as durable."""
    skipped: list[str] = []
    """Damaged places that were passed over, as asked for."""
    rebuilt: list[str] = []
    """Index files that were made again."""
    next_ordinal: int = 0
    """One more than the largest ordinal in any segment."""


class Opened(NamedTuple):
    """What opening a directory found, and holds."""

    lock: int
    """The descriptor that keeps other processes out."""
    catalog: Catalog
    segments: list[Segment]
    recovery: Recovery


def recover(
    directory: Path, catalog: Catalog, segment_bytes: int, *, skip: bool
) -> tuple[list[Segment], Recovery]:
    """Open all segments of a log; the last one is ready to be written to.

    Raises:
        LogDamagedError: There is damage in the middle, and it is not to be skipped.
        OSError: The disk refused.
    """
    report, log_id = Recovery(), catalog.log_id
    bases = _not_empty(directory)
    segments: list[Segment] = []
    for number, base in enumerate(bases):
        segment = Segment(directory, base, 0)
        segment.capacity = segment.path.stat().st_size
        index = files.load_index(segment, log_id)
        if index is not None and index.segment_bytes <= segment.capacity:
            segment.index = index
            segment.written = index.segment_bytes
            segment.newest_ms = index.newest_ms
            largest = max(index.ordinals(), default=-1)
            report.next_ordinal = max(report.next_ordinal, largest + 1)
            segments.append(segment)
            continue
        damages = _scan(segment, log_id, report)
        whole_to = damages[0].place if damages else segment.written
        if segments and _is_behind_a_hole(segment, whole_to, segments, catalog.begins):
            before = segments[-1]
            hole = Damage(before.written, 0, 0)
            if _is_torn(directory, before, hole, bases[number:], log_id):
                _set_aside(directory, bases[number:], report)
                break
            _skip_or_refuse(before, hole, report, skip=skip)
        later = bases[number + 1 :]
        for damage in damages:
            if _is_torn(directory, segment, damage, later, log_id):
                _set_aside(directory, later, report)
                _cut(segment, damage.place, report)
                _scan(segment, log_id, report)
                del bases[number + 1 :]
                break
            _skip_or_refuse(segment, damage, report, skip=skip)
        segments.append(segment)
    _finish(directory, segments, log_id, segment_bytes, report)
    return segments, report


def hold_against(
    catalog: Catalog, segments: list[Segment], report: Recovery, *, skip: bool
) -> None:
    """Give no ordinal that a block has; refuse a journal that lacks topics.

    Raises:
        LogDamagedError: It lacks topics, and that is not to be skipped.
    """
    if report.next_ordinal > catalog.next_ordinal:
        problem = lost_topics(catalog, segments)
        if problem and not skip:
            raise LogDamagedError(
                f'{problem}; restore it, or open with on_damage="skip" to go on '
                "without them"
            )
        catalog.next_ordinal = report.next_ordinal
        catalog.rewrite()


def lost_topics(catalog: Catalog, segments: Iterable[Segment]) -> str | None:
    """Say which records are of a topic that a journal should have, but has not.

    Blocks are synced after the lines that they need. So if one that was synced needs
    lines that are not there, the journal has lost its end, or is an older copy. What
    a power cut took of it is not needed by any block that was synced.
    """
    needing = []
    durable = 0
    for segment in segments:
        with mapped(segment.path) as data, memoryview(data) as view:
            for found in blocks(data, view, segment.base, catalog.log_id):
                if isinstance(found, Damage):
                    continue
                place, block = found
                durable = max(durable, block.durable)
                if any(run[0] >= catalog.next_ordinal for run in block.runs):
                    needing.append((segment, place))
    for segment, place in needing:
        if segment.base + place < durable:
            return (
                f"{catalog.path} lacks the topic of records in {segment.path}, place "
                f"{place}: it has lost its end, or is an older copy"
            )
    return None


def _not_empty(directory: Path) -> list[int]:
    """The base positions of segments; files without a byte are removed.

    Their making was interrupted: one that was used has its size.
    """
    found = []
    for base in files.bases(directory):
        path = Segment(directory, base, 0).path
        if path.stat().st_size:
            found.append(base)
        else:
            path.unlink()
    return found


def _is_behind_a_hole(
    segment: Segment, whole_to: int, before: list[Segment], begins: Mapping[int, int]
) -> bool:
    """Whether a segment does not go on where the one before it seems to end.

    Blocks at the end of a segment may be lost to a power cut, all of them zeros, while
    later ones are there. What it lost of a partition shows in the next offset.
    """
    last = before[-1]
    if not isinstance(last.index, ActiveIndex):
        return False  # it was synced before it was sealed
    assert isinstance(segment.index, ActiveIndex)
    for ordinal, part in segment.index.parts.items():
        if ENTRY.unpack_from(part.data)[0] >= whole_to:
            continue  # it stands behind damage, which may have cost the first ones
        spans = (one.index.span(ordinal) for one in reversed(before))
        span = next(filter(None, spans), None)
        if span is not None:
            if part.base_offset != span.base_offset + span.records:
                return True
        elif part.base_offset != begins.get(ordinal, 0) and not before[0].base:
            return True  # no segment was ever dropped: it has its first record here
    return False


def _finish(
    directory: Path,
    segments: list[Segment],
    log_id: int,
    segment_bytes: int,
    report: Recovery,
) -> None:
    """Seal all but the last segment, and have one that can be written to."""
    while segments and not segments[-1].written and len(segments) > 1:
        segments.pop().path.unlink()  # made ahead, and never used
    for segment in segments:
        unsealed = isinstance(segment.index, ActiveIndex)
        newest = segment is segments[-1]
        if unsealed and (not newest or report.skipped):
            _seal(segment, log_id)
            report.rebuilt.append(str(segment.index_path))
    if segments and isinstance(segments[-1].index, ActiveIndex):
        active = segments[-1]
        active.descriptor = os.open(active.path, os.O_RDWR)
        # A file that was cut short, or made when there was less room.
        active.capacity = max(active.capacity, segment_bytes)
        try:
            allocate(active.descriptor, active.capacity)
            # What is visible from now on must be there after a power cut, too.
            sync_data(active.descriptor)
        except OSError:
            os.close(active.descriptor)
            raise
    else:
        base = 0
        if segments:
            last = segments[-1]
            base = last.base + max(last.capacity, last.written)
        segments.append(files.create(directory, base, segment_bytes))


def _seal(segment: Segment, log_id: int) -> None:
    """Write the index of a segment that is on the disk for sure."""
    descriptor = os.open(segment.path, os.O_RDWR)
    try:
        sync_data(descriptor)
    finally:
        os.close(descriptor)
    segment.index = write_index(segment, log_id)


def _scan(segment: Segment, log_id: int, report: Recovery) -> list[Damage]:
    """Index a segment by its blocks, and list its damaged places."""
    damages: list[Damage] = []
    segment.index = index = ActiveIndex()
    segment.written = segment.newest_ms = 0
    with mapped(segment.path) as data, memoryview(data) as view:
        for found in blocks(data, view, segment.base, log_id):
            if isinstance(found, Damage):
                damages.append(found)
                continue
            place, block = found
            for ordinal, base_offset, entries in block.runs:
                index.add(ordinal, base_offset, entries)
                report.next_ordinal = max(report.next_ordinal, ordinal + 1)
            index.add_keys(block.keys)
            segment.written = place + block.length
            segment.newest_ms = block.written_ms
    return damages


def _is_torn(
    directory: Path, segment: Segment, damage: Damage, later: list[int], log_id: int
) -> bool:
    """Whether nothing behind a damaged place shows that it had been synced."""
    if damage.durable > segment.base + damage.place:
        return False
    for base in later:
        after = Segment(directory, base, 0)
        if files.load_index(after, log_id) is not None:
            return False  # a segment is sealed after all before it were synced
        with mapped(after.path) as data, memoryview(data) as view:
            for found in blocks(data, view, base, log_id):
                # Damage says no more than the blocks behind it, which follow.
                if isinstance(found, Damage):
                    continue
                if found[1].durable > segment.base + damage.place:
                    return False
    return True


def _skip_or_refuse(
    segment: Segment, damage: Damage, report: Recovery, *, skip: bool
) -> None:
    if not skip:
        raise LogDamagedError(_refusal(segment, damage))
    place = f"{segment.path}, place {damage.place}"
    if place not in report.skipped:
        report.skipped.append(place)


def _cut(segment: Segment, place: int, report: Recovery) -> None:
    """End a segment before a torn place, and keep what was there in a file."""
    with mapped(segment.path) as data:
        end = nonzero_end(data, place)
        torn = data[place:end]
    _keep(segment, place, torn, report)
    descriptor = os.open(segment.path, os.O_RDWR)
    try:
        os.ftruncate(descriptor, place)
        allocate(descriptor, segment.capacity)
    finally:
        os.close(descriptor)


def _set_aside(directory: Path, bases: list[int], report: Recovery) -> None:
    """Take all segments behind a torn place out of the log, the last one first.

    One whose name a power cut brings back stands behind a hole, and goes again.
    """
    for base in reversed(bases):
        segment = Segment(directory, base, 0)
        with mapped(segment.path) as data:
            torn = data[: nonzero_end(data, 0)]
        if torn:
            _keep(segment, 0, torn, report)
        segment.path.unlink()


def _keep(segment: Segment, place: int, torn: bytes, report: Recovery) -> None:
    path = files.keep_torn(segment.path, torn)
    report.dropped.append(Dropped(segment.base + place, len(torn), path.name))


def _refusal(segment: Segment, damage: Damage) -> str:
    return (
        f"{segment.path}, place {damage.place}: no whole block there, though "
        f"{damage.intact} whole blocks follow in the file or later ones were synced; "
        'restore the file, or open with on_damage="skip" to go on without what is lost'
    )


def recheck(segment: Segment, log_id: int, skip: bool) -> SealedIndex:
    """A sealed index that can be trusted: the one there is, or made from the blocks.

    Raises:
        LogDamagedError: Index and segment are both damaged, with nothing to skip.
        OSError: The disk refused.
    """
    index = segment.index
    assert isinstance(index, SealedIndex)
    if not index.checked and not files.index_is_whole(segment.index_path, index):
        again = Segment(segment.path.parent, segment.base, segment.capacity)
        for damage in _scan(again, log_id, Recovery()):
            if not skip:
                raise LogDamagedError(_refusal(again, damage))
        index = write_index(again, log_id)
    index.checked = True
    return index
