"""Checking every checksum of a log that is not open, without changing a byte."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.storage.api import LogError
from ropeway.storage.file import catalog, lock
from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.scan import Damage, blocks, mapped
from ropeway.storage.file.segment import Segment, bases, index_is_whole, load_index

if TYPE_CHECKING:
    from pathlib import Path


class Verified(Struct):
    """What a check of a log came upon."""

    segments: int = 0
    blocks: int = 0
    records: int = 0
    problems: list[str] = []
    """One line for each file and place that is not what was written."""


def verify(directory: Path) -> Verified:
    """Check the journal, every block, and every index of a log.

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
        for base in bases(directory):
            _verify_segment(Segment(directory, base, 0), known.log_id, report)
        return report
    finally:
        os.close(held)


def _verify_segment(segment: Segment, log_id: int, report: Verified) -> None:
    if not segment.path.stat().st_size:
        return  # its making was interrupted; the next opening removes it
    report.segments += 1
    written = 0
    with mapped(segment.path) as data, memoryview(data) as view:
        for found in blocks(data, view, segment.base, log_id):
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
            written = place + block.length
    if not segment.index_path.exists():
        return
    index = load_index(segment, log_id)
    if index is None or not index_is_whole(segment.index_path, index):
        report.problems.append(f"{segment.index_path}: not what was written")
    elif index.segment_bytes != written:
        report.problems.append(
            f"{segment.path}: {written} bytes of whole blocks; "
            f"its index says {index.segment_bytes}"
        )
