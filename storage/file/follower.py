"""Reading a log block by block in the order of writing, for who copies it.

Only what is on the disk is read, so a power cut never takes back what was copied.
Each block is held against its checksum before anything of it is given away.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ropeway.common.reasons import reason_of
from ropeway.storage.api import LogDamagedError, LogUnavailableError
from ropeway.storage.file import block as blocks
from ropeway.storage.file.block import HEADER
from ropeway.storage.file.log_scan import gather
from ropeway.storage.replication import Run, Stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ropeway.storage.file.segments import Segments


def identity(log_id: int, ordinal: int) -> int:
    """A partition's number that no other has, in this log or in another one.

    The log's id has 63 random bits; of two logs that one copy may ever meet, its lower
    half differs. Ordinals are never given twice.
    """
    return (log_id & 0xFFFFFFFF) << 32 | ordinal


class Follower:
    """Reads what one log has on its disk."""

    def __init__(
        self,
        segments: Segments,
        names: Mapping[int, tuple[str, int]],
        durable: Callable[[], int],
        *,
        skip: bool,
    ) -> None:
        self._segments = segments
        self._names = names
        self._durable = durable
        self._skip = skip

    def submit(self, position: int, max_bytes: int) -> Callable[[], Stretch]:
        """What to run in a thread to get the stretch at a position."""
        durable = self._durable()
        nothing = Stretch(position, 0, [])
        for segment in self._segments.all:
            # The next one begins where this one's file would have ended.
            if segment.end <= position or not segment.written:
                continue
            start = max(position, segment.base)
            end = min(segment.end, durable)
            if start >= end:
                return lambda: nothing
            path, base = segment.path, segment.base
            return lambda: self._read(path, base, start, end, max_bytes)
        return lambda: nothing

    def _read(
        self, path: Path, base: int, position: int, end: int, max_bytes: int
    ) -> Stretch:
        try:
            data = read_blocks(path, position - base, end - base, max_bytes)
        except FileNotFoundError:  # retention was faster
            return Stretch(end, 0, [])
        except OSError as error:
            raise LogUnavailableError(
                f"cannot read {path}: {reason_of(error)}"
            ) from error
        taken, damaged, log_id, written_ms, groups = gather(data)
        if damaged and self._skip:
            taken = end - position
        elif not taken:
            place = position - base
            raise LogDamagedError(
                f"{path}, place {place}: no whole block there; open with "
                'on_damage="skip" to go on without what is lost'
            )
        runs = []
        for ordinal, base_offset, records, data, entries, keys in groups:
            name = self._names.get(ordinal)
            if name is not None:
                its_own = identity(log_id, ordinal)
                run = Run(*name, its_own, base_offset, records, data, entries, keys)
                runs.append(run)
        return Stretch(position + taken, written_ms, runs)


def read_blocks(path: Path, place: int, end: int, max_bytes: int) -> bytes:
    """Bytes of a segment from a block on: at least all of that block.

    Raises:
        OSError: The disk refused.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = max(max_bytes, HEADER.size)
        data = os.pread(descriptor, min(size, end - place), place)
        if len(data) >= HEADER.size:
            length = blocks.length_at(memoryview(data), 0)
            if length > len(data):
                data = os.pread(descriptor, min(length, end - place), place)
        return data
    finally:
        os.close(descriptor)
