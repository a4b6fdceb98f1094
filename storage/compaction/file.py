"""One file of compacted records with its index: looking into it. In any thread.

Every call opens the file and closes it again: nothing is held open, however many there
are, and a file that was replaced meanwhile is a `FileNotFoundError`.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from ropeway.storage.api import LogDamagedError
from ropeway.storage.compaction import layout
from ropeway.storage.compaction.layout import ENTRY, GROUP_RECORDS, HEADER, Entry, Index
from ropeway.storage.compaction.offset_map import DIGEST_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

DATA_SUFFIX = ".data"
INDEX_SUFFIX = ".index"
_FIND_BYTES = (1 << 18) // ENTRY.size * ENTRY.size
_DIGEST_AT = ENTRY.size - DIGEST_BYTES
_SIZE_BYTES = 4


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
    try:
        got = os.preadv(descriptor, [data], place, os.RWF_NOWAIT)
    except OSError as error:  # also where a file system cannot tell
        raise ColdError from error
    if got < size:
        raise ColdError
    return data


class Slice(NamedTuple):
    """What a read found in one file."""

    pieces: list[tuple[memoryview, int]]
    """Records back to back, with how many they are."""
    looked: int
    next_offset: int
    """Behind the last record that was looked at; the file's end after all of them."""


class CompactedFile:
    """A data file and its index."""

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
        return self.index.firsts[0]

    def entries(self, group: int) -> list[Entry]:
        """The entries of a group.

        Raises:
            LogDamagedError: They are not what was written.
            OSError: The disk refused, or the file is gone.
        """
        with self.index_path.open("rb") as file:
            return self._entries(file.fileno(), group)

    def _entries(
        self, descriptor: int, group: int, fetch: Fetch = os.pread
    ) -> list[Entry]:
        place, size = self.index.entries_of(group)
        return self.index.parse(
            group, fetch(descriptor, size, place), str(self.index_path)
        )

    def entry_bytes(self, group: int, end: int) -> bytes:
        """The entries of several groups, as they stand; raises as `entries`."""
        place, _ = self.index.entries_of(group)
        last, size = self.index.entries_of(end - 1)
        with self.index_path.open("rb") as file:
            data = os.pread(file.fileno(), last + size - place, place)
        for one in range(group, end):
            at, its_size = self.index.entries_of(one)
            piece = memoryview(data)[at - place : at - place + its_size]
            self.index.check(one, piece, str(self.index_path))
        return data

    def group_at(self, offset: int) -> int:
        """The group that has an offset, or would have it."""
        return max(bisect_right(self.index.firsts, offset) - 1, 0)

    def read(
        self,
        offset: int,
        max_count: int,
        max_bytes: int,
        tags: Collection[int] | None,
        looks: int,
        fetch: Fetch = os.pread,
    ) -> Slice:
        """Records from an offset on, or from the next one there is.

        Args:
            offset: Where to begin.
            max_count: At most so many records.
            max_bytes: Stop before the record that would go over; the first record
                that matches comes always.
            tags: Only records with one of these hashes; None for all.
            looks: Look at no more records.
            fetch: Reads from files; what it raises comes through.

        Raises:
            LogDamagedError: An entry or a record is not what was written.
            OSError: The disk refused, or the file is gone.
        """
        chosen: list[Entry] = []
        total = looked = 0
        next_offset = offset
        with self.index_path.open("rb") as file:
            for entry in self._entries_from(file.fileno(), offset, fetch):
                if tags is None or entry.tag_hash in tags:
                    total += entry.size
                    if total > max_bytes and chosen:
                        break
                    chosen.append(entry)
                looked += 1
                next_offset = entry.offset + 1
                if len(chosen) == max_count or looked == looks:
                    break
            else:
                next_offset = self.end
        return Slice(self._pieces(chosen, fetch), looked, next_offset)

    def _entries_from(
        self, descriptor: int, offset: int, fetch: Fetch
    ) -> Iterator[Entry]:
        start = self.group_at(offset)
        for group in range(start, len(self.index.firsts)):
            entries = self._entries(descriptor, group, fetch)
            if group == start:
                at = bisect_left(entries, offset, key=_offset_of)
                entries = entries[at:]
            yield from entries

    def _pieces(
        self, chosen: list[Entry], fetch: Fetch = os.pread
    ) -> list[tuple[memoryview, int]]:
        if not chosen:
            return []
        begin = chosen[0].place
        size = chosen[-1].place + chosen[-1].size - begin
        with self.data_path.open("rb") as file:
            view = memoryview(fetch(file.fileno(), size, begin))
        pieces: list[tuple[memoryview, int]] = []
        start = stop = chosen[0].place
        count = 0
        for entry in chosen:
            at = entry.place - begin
            its_size = int.from_bytes(view[at : at + _SIZE_BYTES], "big")
            if its_size != entry.size or at + entry.size > len(view):
                raise LogDamagedError(
                    f"{self.data_path}, place {entry.place}: no record of {entry.size} "
                    "bytes there; restore the file from a copy"
                )
            if entry.place != stop:
                pieces.append((view[start - begin : stop - begin], count))
                start, count = entry.place, 0
            stop = entry.place + entry.size
            count += 1
        pieces.append((view[start - begin : stop - begin], count))
        return pieces

    def read_groups(self, first: int, end: int) -> memoryview:
        """All records of groups, held against their checksums.

        Raises:
            LogDamagedError: They are not what was written.
            OSError: The disk refused.
        """
        begin, _ = self.index.data_of(first)
        with self.data_path.open("rb") as file:
            size = sum(self.index.data_of(end - 1)) - begin
            view = memoryview(os.pread(file.fileno(), size, begin))
        for group in range(first, end):
            place, its_size = self.index.data_of(group)
            data = view[place - begin : place - begin + its_size]
            if crc32(data) != self.index.data_crcs[group]:
                raise LogDamagedError(
                    f"{self.data_path}, place {place}: not what was written; "
                    "restore the file from a copy"
                )
        return view

    def at_time(self, time_ms: int) -> Entry | None:
        """The first record stored at or after a time; None where there is none."""
        low, high = 0, self.index.records
        with self.index_path.open("rb") as file:
            found: Entry | None = None
            while low < high:
                middle = (low + high) // 2
                group, at = divmod(middle, GROUP_RECORDS)
                entry = self._entries(file.fileno(), group)[at]
                if entry.store_ms < time_ms:
                    low = middle + 1
                else:
                    high, found = middle, entry
            return found

    def before(self, offset: int) -> Entry:
        """The last record before an offset that is above the first one's."""
        group = self.group_at(offset - 1)
        entries = self.entries(group)
        return entries[bisect_left(entries, offset, key=_offset_of) - 1]

    def entry_at(self, offset: int) -> Entry | None:
        """The entry of an offset; None where that has no record."""
        entries = self.entries(self.group_at(offset))
        at = bisect_left(entries, offset, key=_offset_of)
        found = entries[at] if at < len(entries) else None
        return found if found is not None and found.offset == offset else None

    def find(self, digest: bytes) -> Entry | None:
        """The record of a key, by looking through the entries.

        Of one partition's files one at most has it.
        """
        start = self.index.entries_at
        end = start + self.index.records * ENTRY.size
        with self.index_path.open("rb") as file:
            for place in range(start, end, _FIND_BYTES):
                data = os.pread(file.fileno(), min(_FIND_BYTES, end - place), place)
                at = data.find(digest)
                while at >= 0:
                    if at % ENTRY.size == _DIGEST_AT:
                        number = (place + at - start) // ENTRY.size
                        group, within = divmod(number, GROUP_RECORDS)
                        return self._entries(file.fileno(), group)[within]
                    at = data.find(digest, at + 1)
        return None

    def record(self, entry: Entry) -> bytes:
        """The bytes of a record."""
        return bytes(self._pieces([entry])[0][0])


def _offset_of(entry: Entry) -> int:
    return entry.offset


def open_file(directory: Path, name: str, end: int) -> CompactedFile:
    """A file that a manifest names.

    Raises:
        LogDamagedError: Its directory is not what was written, or the data is short.
        LogError: A newer program made it.
        OSError: The disk refused, or it is missing.
    """
    path = directory / (name + INDEX_SUFFIX)
    with path.open("rb") as file:
        head = os.pread(file.fileno(), HEADER.size, 0)
        groups = -(-int.from_bytes(head[12:16], "little") // GROUP_RECORDS)
        data = os.pread(file.fileno(), HEADER.size + groups * layout.GROUP.size, 0)
    index = layout.load(data, str(path))
    found = CompactedFile(directory, name, index, end)
    size = found.data_path.stat().st_size
    if size != index.data_bytes:
        raise LogDamagedError(
            f"{found.data_path} has {size} bytes; written were {index.data_bytes}: "
            "restore it from a copy"
        )
    return found
