"""Checking every checksum of a log that is not open, without changing a byte."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.common.versions import newer
from ropeway.storage.api import LogError
from ropeway.storage.file import catalog, lock
from ropeway.storage.file import index as file_index
from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.recovery import lost_topics
from ropeway.storage.file.scan import Damage, blocks, mapped
from ropeway.storage.file.segment import Segment, bases, index_is_whole, load_index

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.file.catalog import Catalog


class Verified(Struct):
    """What a check of a log came upon."""

    segments: int = 0
    blocks: int = 0
    records: int = 0
    problems: list[str] = []
    """One line for each file and place that is not what was written."""


def verify(directory: Path, ends: dict[tuple[str, int], int] | None = None) -> Verified:
    """Check the journal, every block, and every index of a log.

    Args:
        directory: The log's.
        ends: Gets the end of each partition, by topic and number.

    Raises:
        LogInUseError: The log is open.
        LogError: There is no log, or it is of a newer format.
    """
    if not (directory / catalog.NAME).exists():
        raise LogError(f"no log in {directory}: it has no file {catalog.NAME}")
    held = lock.take(directory)
    try:
        known = catalog.load(directory / catalog.NAME, skip=False)
        assert known is not None
        report = Verified()
        segments = [Segment(directory, base, 0) for base in bases(directory)]
        for segment in segments:
            _verify_segment(segment, known, report)
        if max(known.ends, default=-1) >= known.next_ordinal:
            problem = lost_topics(known, segments)
            report.problems += [problem] if problem else []
        if ends is not None:
            ends |= {at: known.ends.get(n, 0) for n, at in known.names.items()}
        return report
    finally:
        os.close(held)


def _verify_segment(segment: Segment, known: Catalog, report: Verified) -> None:
    if not segment.path.stat().st_size:
        return  # its making was interrupted; the next opening removes it
    report.segments += 1
    written = 0
    with mapped(segment.path) as data, memoryview(data) as view:
        for found in blocks(data, view, segment.base, known.log_id):
            if isinstance(found, Damage):
                report.problems.append(
                    f"{segment.path}, place {found.place}: no whole block; "
                    f"{found.intact} whole blocks follow"
                )
                continue
            place, block = found
            report.blocks += 1
            report.records += (
                sum(len(entries) for _, _, entries in block.runs) // ENTRY.size
            )
            for ordinal, base_offset, entries in block.runs:
                known.ends[ordinal] = base_offset + len(entries) // ENTRY.size
            written = place + block.length
    if not segment.index_path.exists():
        return
    index = load_index(segment, known.log_id)
    if index is None or not index_is_whole(segment.index_path, index):
        report.problems.append(_what_is_wrong(segment.index_path))
    elif index.segment_bytes != written:
        report.problems.append(
            f"{segment.path}: {written} bytes of whole blocks; "
            f"its index says {index.segment_bytes}"
        )


def _what_is_wrong(path: Path) -> str:
    """A newer index is made again by an opening, as a damaged one is."""
    head = path.read_bytes()[: file_index.HEADER.size]
    if len(head) == file_index.HEADER.size:
        magic, _, version, *_ = file_index.HEADER.unpack(head)
        if magic == file_index.MAGIC and version > file_index.VERSION:
            return newer(path, version, file_index.VERSION)
    return f"{path}: not what was written"
