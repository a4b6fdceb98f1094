"""One segment file: its names, its making, writing to it, its index while it grows."""

from __future__ import annotations

import contextlib
import os
from array import array
from typing import TYPE_CHECKING

from ropeway.common.system import allocate
from ropeway.storage import private
from ropeway.storage.checked_header import checked
from ropeway.storage.directories import sync_directory
from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.compiled import crc32, in_runs
from ropeway.storage.file.index import HEADER as INDEX_HEADER
from ropeway.storage.file.index import (
    KEYS_A_RUN,
    MAGIC,
    VERSION,
    SealedIndex,
    Span,
    directory_bytes,
    load,
    places_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ropeway.storage.file.index import Piece

SUFFIX = ".log"
PIECE_BYTES = 1 << 18
"""How much of an index file is checked at a time."""
MAX_KEY_BYTES = 16 << 20
"""Keys of one segment, beyond which the next one begins. They are in memory until it is
sealed. A segment of 128 MiB has 8 MiB of them where messages have 256 bytes and two
keys each; where they have thousands each, there are more bytes of keys than of
messages."""


class Entries:
    """The entries of one partition in the active segment."""

    __slots__ = ("base_offset", "data")

    def __init__(self, base_offset: int, data: bytes) -> None:
        self.base_offset = base_offset
        self.data = bytearray(data)

    def fill_to(self, offset: int) -> None:
        """Stand in for lost records, with place and time of the one before."""
        missing = offset - self.base_offset - len(self.data) // ENTRY.size
        if missing > 0:
            place, _, _, store_ms = ENTRY.unpack_from(
                self.data, len(self.data) - ENTRY.size
            )
            self.data += ENTRY.pack(place, 0, 0, store_ms) * missing


class ActiveIndex:
    """The index of a segment that still grows, or whose file is not written yet."""

    __slots__ = ("_runs", "_tail", "key_bytes", "parts")

    def __init__(self) -> None:
        self.parts: dict[int, Entries] = {}
        self._runs: list[memoryview] = []
        self._tail: array[int] = array("Q")
        self.key_bytes = 0
        """What its keys take."""

    def add(self, ordinal: int, base_offset: int, entries: bytes) -> bool:
        """Add the entries of one run; whether the partition is new here."""
        part = self.parts.get(ordinal)
        if part is None:
            self.parts[ordinal] = Entries(base_offset, entries)
            return True
        if part.base_offset + len(part.data) // ENTRY.size != base_offset:
            part.fill_to(base_offset)
        part.data += entries
        return False

    def add_keys(self, keys: bytes) -> None:
        """Add the key values of one block."""
        tail = self._tail
        tail.frombytes(keys)
        self.key_bytes += len(keys)
        if len(tail) < KEYS_A_RUN:
            return
        whole = len(tail) - len(tail) % KEYS_A_RUN
        runs = memoryview(in_runs(tail[:whole], 0, KEYS_A_RUN)).cast("Q")
        del tail[:whole]
        self._runs += [runs[at : at + KEYS_A_RUN] for at in range(0, whole, KEYS_A_RUN)]

    def span(self, ordinal: int) -> Span | None:
        """Which offsets of a partition are here."""
        part = self.parts.get(ordinal)
        if part is None:
            return None
        return Span(part.base_offset, len(part.data) // ENTRY.size, 0)

    def ordinals(self) -> Iterable[int]:
        """The partitions that have records here."""
        return tuple(self.parts)

    @property
    def runs(self) -> int:
        """How many runs of keys there are; the last one is not sorted."""
        return len(self._runs) + 1

    def places(self, run: int, key_hash: int) -> Iterator[int]:
        """Where records with a key hash may stand, by one run, newest first."""
        if run < len(self._runs):
            yield from places_in(self._runs[run], 0, KEYS_A_RUN, key_hash)
            return
        for value in reversed(self._tail):
            if value >> 32 == key_hash:
                yield value & 0xFFFFFFFF

    def dump(
        self, *, base: int, log_id: int, segment_bytes: int, newest_ms: int
    ) -> list[Piece]:
        """The index file, in pieces: the long ones are this index's own, not copies."""
        ordinals = sorted(self.parts)
        parts = [self.parts[ordinal] for ordinal in ordinals]
        counts = array("I", [len(part.data) // ENTRY.size for part in parts])
        bases = array("Q", [part.base_offset for part in parts])
        directory = array("I", ordinals).tobytes() + counts.tobytes() + bases.tobytes()
        body: list[Piece] = [part.data for part in parts]
        body += [run.cast("B") for run in self._runs]
        body.append(in_runs(self._tail, 0, KEYS_A_RUN))
        body_crc = 0
        for piece in body:
            body_crc = crc32(piece, body_crc)
        header = INDEX_HEADER.pack(
            MAGIC,
            0,
            VERSION,
            0,
            len(parts),
            base,
            log_id,
            segment_bytes,
            newest_ms,
            sum(counts),
            len(self._runs) * KEYS_A_RUN + len(self._tail),
            body_crc,
            0,
        )
        return [checked(header, directory), directory, *body]


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

    def filled(self, block_bytes: int) -> float:
        """How full it would be with a block; above 1, that begins another segment."""
        return max(
            (self.written + block_bytes) / self.capacity,
            (self.index.key_bytes + 1) / MAX_KEY_BYTES,
        )


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
        allocate(descriptor, capacity)
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


def keep_torn(path: Path, torn: bytes) -> Path:
    """Keep what a file's end lost, for whoever wants to look; the log never reads it.

    Args:
        path: Whose end it was.
        torn: That.

    Returns:
        Where it is now.
    """
    number = 0
    while (kept := path.with_suffix(f".dropped-{number}")).exists():
        number += 1
    write_file(kept, [torn])
    return kept


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
