"""One segment file: its names, its making, and writing to it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ropeway.storage import private
from ropeway.storage.directories import sync_directory
from ropeway.storage.file.compiled import crc32
from ropeway.storage.file.index import HEADER as INDEX_HEADER
from ropeway.storage.file.index import ActiveIndex, SealedIndex, directory_bytes, load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ropeway.storage.file.index import Piece

SUFFIX = ".log"
PIECE_BYTES = 1 << 18
"""How much of an index file is checked at a time."""


class Segment:
    """A run of the log that starts at position `base` and is one file."""

    __slots__ = (
        "base",
        "capacity",
        "descriptor",
        "fetched_to",
        "gone",
        "index",
        "index_path",
        "newest_ms",
        "path",
        "written",
    )

    def __init__(self, directory: Path, base: int, capacity: int) -> None:
        self.base = base
        self.capacity = capacity
        self.path = directory / f"{base:020}{SUFFIX}"
        self.index_path = self.path.with_suffix(".index")
        self.written = 0
        """Bytes of whole blocks; the next one goes here."""
        self.newest_ms = 0
        """When the last block was written; 0 while there is none."""
        self.descriptor = -1
        """Open for writing; -1 when it is sealed."""
        self.index: ActiveIndex | SealedIndex = ActiveIndex()
        self.fetched_to = 0
        """Where the last read from the disk ended, with what was read ahead."""
        self.gone = False
        """Whether retention has dropped it."""

    @property
    def end(self) -> int:
        """The position after the last whole block."""
        return self.base + self.written


def bases(directory: Path) -> list[int]:
    """The base positions of all segment files, ascending."""
    return sorted(
        int(path.stem)
        for path in directory.glob(f"*{SUFFIX}")
        if len(path.stem) == 20 and path.stem.isdigit()  # noqa: PLR2004 - digits of a name
    )


def create(directory: Path, base: int, capacity: int) -> Segment:
    """Make a segment file with all its bytes set aside, and its name durable.

    Raises:
        OSError: Nothing is left of the file then.
    """
    segment = Segment(directory, base, capacity)
    descriptor = os.open(segment.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, private.FILE)
    try:
        os.posix_fallocate(descriptor, 0, capacity)
        # A segment that was used is told by its size from one that was never made.
        os.fsync(descriptor)
        sync_directory(directory)
    except OSError:
        os.close(descriptor)
        segment.path.unlink()
        raise
    segment.descriptor = descriptor
    return segment


def write_block(segment: Segment, pieces: list[bytes]) -> None:
    """Write a block behind a segment's others, or leave zeros where it would be.

    Raises:
        OSError: It could not be written. `__cause__` is set where what a partial
            write left behind could not be cleared either.
    """
    descriptor, place = segment.descriptor, segment.written
    wanted = sum(map(len, pieces))
    done = os.pwritev(descriptor, pieces, place)
    if done == wanted:
        return
    rest = b"".join(pieces)
    try:
        while done < wanted:
            done += os.pwrite(descriptor, rest[done:], place + done)
    except OSError as error:
        try:
            os.pwrite(descriptor, bytes(done), place)
        except OSError as second:
            raise error from second
        raise


def write_file(path: Path, pieces: Sequence[Piece]) -> None:
    """Make a file that is there whole or not at all, also after a power cut."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    sync_directory(path.parent)


def load_index(segment: Segment, log_id: int) -> SealedIndex | None:
    """The directory of a segment's index file; None where it is absent or damaged."""
    try:
        with segment.index_path.open("rb") as file:
            head = file.read(INDEX_HEADER.size)
            length = directory_bytes(head, segment.base, log_id)
            size = os.fstat(file.fileno()).st_size
            if length is None or length > size:
                return None
            index = load(head, file.read(length))
    except FileNotFoundError:
        return None
    if index is None or index.file_bytes != size:
        return None
    return index


def index_is_whole(path: Path, index: SealedIndex) -> bool:
    """Whether entries and keys of an index file are what was written.

    Raises:
        OSError: The file cannot be read.
    """
    checksum = 0
    # One piece of memory for all: new ones would have to be cleared by the kernel.
    piece = memoryview(bytearray(PIECE_BYTES))
    with path.open("rb", buffering=0) as file:
        file.seek(index.body_at)
        while got := file.readinto(piece):
            checksum = crc32(piece[:got], checksum)
    return checksum == index.body_crc
