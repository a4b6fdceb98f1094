"""One file of compacted records with its index: looking into it. In any thread.

Every call opens the file and closes it again: nothing is held open, however many there
are, and a file that was replaced meanwhile is a `FileNotFoundError`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ropeway.common.system import read_resident
from ropeway.storage.api import LogDamagedError, LogError
from ropeway.storage.sealed.index import Index
from ropeway.storage.sealed.layout import (
    DATA_SUFFIX,
    INDEX_SUFFIX,
    NewerSegmentError,
    SegmentError,
    decode_head,
    wanted_bytes,
)

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.storage.sealed.columns import Columns
    from ropeway.storage.sealed.index import Block
    from ropeway.storage.sealed.layout import Whose
    from ropeway.storage.sealed.pick import Pick

_FIND_BLOCKS = 64
"""Whose columns are looked through at once: some 200 KB."""

Fetch = Callable[[int, int, int], bytes | bytearray]
"""Reads from a descriptor so many bytes at a place, as `os.pread` does."""


class ColdError(Exception):
    """What was asked for would have to come from the disk."""


def fetch_hot(descriptor: int, size: int, place: int) -> bytearray:
    """Bytes of a file that are in memory.

    Raises:
        ColdError: Not all of them are.
    """
    data = bytearray(size)
    if not read_resident(descriptor, data, place):
        raise ColdError
    return data


class Kept(NamedTuple):
    """A record that is there."""

    offset: int
    store_ms: int
    data: bytes


class CompactedFile:
    """A data file and its index.

    Every method that looks into them raises `LogDamagedError` where they are not what
    was written, and `OSError` where the disk refuses or a file is gone.
    """

    __slots__ = ("data_path", "end", "index", "index_path", "name")

    def __init__(self, directory: Path, name: str, index: Index, end: int) -> None:
        self.name = name
        self.data_path = directory / (name + DATA_SUFFIX)
        self.index_path = directory / (name + INDEX_SUFFIX)
        self.index = index
        self.end = end
        """The first offset that is looked for elsewhere."""

    @property
    def first(self) -> int:
        """The offset of its first record."""
        return self.index.about.base_offset

    def columns(self, first: int, end: int) -> list[Columns]:
        """The columns of some blocks."""
        view = memoryview(self._column_bytes(first, end))
        begin, _ = self.index.columns_at(first, end)
        found = []
        for block in range(first, end):
            place, size = self.index.columns_at(block, block + 1)
            found.append(self._columns(block, view[place - begin :][:size]))
        return found

    def _column_bytes(self, first: int, end: int) -> bytes:
        place, size = self.index.columns_at(first, end)
        with self.index_path.open("rb") as file:
            return os.pread(file.fileno(), size, place)

    def blocks(self, first: int, end: int) -> list[Block]:
        """Some blocks with their columns."""
        begin, size = self.index.data_at(first, end)
        all_columns = self.columns(first, end)
        with self.data_path.open("rb") as file:
            view = memoryview(os.pread(file.fileno(), size, begin))
        found = []
        for block, columns in zip(range(first, end), all_columns, strict=True):
            place, size = self.index.data_at(block, block + 1)
            stored = view[place - begin :][:size]
            found.append(self._block(block, columns, stored))
        return found

    def _columns(self, block: int, data: bytes | bytearray | memoryview) -> Columns:
        try:
            return self.index.columns_of(block, data)
        except SegmentError as error:
            raise _damaged(self.index_path, error) from error

    def _block(
        self, block: int, columns: Columns, stored: bytes | bytearray | memoryview
    ) -> Block:
        try:
            return self.index.open_block(block, stored, columns)
        except SegmentError as error:
            raise _damaged(self.data_path, error) from error

    def read(self, pick: Pick, fetch: Fetch = os.pread) -> None:
        """Go on with a read, to the end of the file at most.

        Args:
            pick: What was found so far.
            fetch: Reads from files; what it raises comes through.
        """
        index = self.index
        with (
            self.index_path.open("rb", buffering=0) as of_columns,
            self.data_path.open("rb", buffering=0) as of_blocks,
        ):

            def fetched(block: int, columns: Columns) -> Block:
                place, size = index.data_at(block, block + 1)
                stored = fetch(of_blocks.fileno(), size, place)
                return self._block(block, columns, stored)

            for block in range(index.block_at(pick.offset), index.blocks):
                if not pick.goes_on:
                    return
                place, size = index.columns_at(block, block + 1)
                data = fetch(of_columns.fileno(), size, place)
                columns = self._columns(block, data)
                if not pick.look(columns, self.end, partial(fetched, block, columns)):
                    return
        if pick.goes_on:
            pick.offset = max(pick.offset, self.end)

    def at_time(self, time_ms: int) -> int | None:
        """The first record stored at or after a time; None where there is none."""
        records = self.index.about.records
        found = self.index.count_before(time_ms, records, self._times)
        if found == records:
            return None
        block = self.index.block_of(found)
        return self._one(block).offset(found - self.index.starts[block])

    def _times(self, block: int) -> memoryview:
        return self._one(block).times

    def _one(self, block: int) -> Columns:
        (columns,) = self.columns(block, block + 1)
        return columns

    def before(self, offset: int) -> int:
        """The last record before an offset that is above the first one's."""
        columns = self._one(self.index.block_at(offset - 1))
        return columns.offset(columns.at(offset) - 1)

    def store_time(self, offset: int) -> int | None:
        """When a record was stored; None where there is none at that offset."""
        columns = self._one(self.index.block_at(offset))
        at = columns.at(offset)
        if at == columns.records or columns.offset(at) != offset:
            return None
        return int(columns.times[at])

    def find(self, digest: bytes) -> Kept | None:
        """The record of a key, by looking through the columns.

        Of one partition's files one at most has it.
        """
        index = self.index
        for first in range(0, index.blocks, _FIND_BLOCKS):
            end = min(first + _FIND_BLOCKS, index.blocks)
            data = self._column_bytes(first, end)
            at = data.find(digest)
            while at >= 0:
                # Other columns may have these bytes, too.
                block = index.block_of(index.starts[first] + at // index.width)
                ((records, places, columns),) = self.blocks(block, block + 1)
                found = columns.find(digest)
                if found is not None:
                    record = bytes(records[places[found] : places[found + 1]])
                    store_ms = int(columns.times[found])
                    return Kept(columns.offset(found), store_ms, record)
                at = data.find(digest, at + 1)
        return None


def open_file(directory: Path, name: str, whose: Whose, end: int) -> CompactedFile:
    """A file that a manifest names.

    Args:
        directory: Where it is.
        name: Without its end.
        whose: The partition, as the manifest says.
        end: The first offset that is looked for elsewhere.

    Raises:
        LogDamagedError: Its index is not what was written or another's, or one of both
            files has another size.
        LogError: A newer program made it.
        OSError: The disk refused, or it is missing.
    """
    path = directory / (name + INDEX_SUFFIX)
    with path.open("rb") as file:
        index_bytes = os.fstat(file.fileno()).st_size
        head = os.pread(file.fileno(), wanted_bytes(b""), 0)
        head = os.pread(file.fileno(), min(wanted_bytes(head), index_bytes), 0)
    try:
        index = Index(*decode_head(head))
        index.check_name(whose, int(name.partition("-")[0]))
        index.check_index_bytes(index_bytes)
        path = directory / (name + DATA_SUFFIX)
        index.check_data_bytes(path.stat().st_size)
    except SegmentError as error:
        raise _damaged(path, error) from error
    return CompactedFile(directory, name, index, end)


def _damaged(path: Path, error: SegmentError) -> LogError:
    if isinstance(error, NewerSegmentError):
        return LogError(f"{path}: {error}")
    return LogDamagedError(f"{path}: {error}; restore the file from a copy")
