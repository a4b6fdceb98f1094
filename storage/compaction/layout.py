"""The index of one file of compacted records, as bytes. No I/O here.

     0  magic      4s   "RWYC"
     4  crc32      u32  of the header from 8 on, and of the directory
     8  version    u16  1
    10  group      u16  records of one group; the last one has fewer
    12  records    u32
    16  data_bytes u64  of the data file
    24  newest_ms  i64  the latest store time
    32  due_ms     i64  when the first record may go that nothing replaces; 0: never
    40  zero       u64
    48  directory  {first offset u64, place u32, data crc32 u32, entries crc32 u32} each
        entries    {offset u64, place u32, size u32, tag hash i32, store ms i64,
                    due ms i64, digest 16s} each

Little-endian. The directory is held in memory, and is the sparse index: one place in
64 records is enough to find any of them by bisection and one read.
"""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from ropeway.storage.api import LogDamagedError, LogError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"RWYC"
VERSION = 1
HEADER = struct.Struct("<4sIHHIQqqQ")
GROUP = struct.Struct("<QIII")
ENTRY = struct.Struct("<QIIiqq16s")
GROUP_RECORDS = 64
_CHECKED_FROM = 8


class Entry(NamedTuple):
    """A record of a compacted file, all but its bytes."""

    offset: int
    place: int
    size: int
    tag_hash: int
    store_ms: int
    due_ms: int
    """When it may go though nothing replaces it; 0: never."""
    digest: bytes
    """Of its key; zeros where it has none."""


class Index:
    """The header and the directory of an index file."""

    __slots__ = (
        "_entry_crcs",
        "data_bytes",
        "data_crcs",
        "due_ms",
        "firsts",
        "newest_ms",
        "places",
        "records",
    )

    def __init__(
        self,
        records: int,
        data_bytes: int,
        newest_ms: int,
        due_ms: int,
        groups: Sequence[tuple[int, int, int, int]],
    ) -> None:
        self.records = records
        self.data_bytes = data_bytes
        self.newest_ms = newest_ms
        self.due_ms = due_ms
        self.firsts = array("Q", (group[0] for group in groups))
        """The first offset of each group."""
        self.places = array("I", (group[1] for group in groups))
        """Where its records begin in the data file."""
        self.data_crcs = array("I", (group[2] for group in groups))
        self._entry_crcs = array("I", (group[3] for group in groups))

    @property
    def entries_at(self) -> int:
        """Where the entries begin in the index file."""
        return HEADER.size + GROUP.size * len(self.firsts)

    def dump(self) -> bytes:
        """The header and the directory as bytes."""
        directory = b"".join(
            map(GROUP.pack, self.firsts, self.places, self.data_crcs, self._entry_crcs)
        )
        header = HEADER.pack(
            MAGIC,
            0,
            VERSION,
            GROUP_RECORDS,
            self.records,
            self.data_bytes,
            self.newest_ms,
            self.due_ms,
            0,
        )
        checksum = crc32(directory, crc32(header[_CHECKED_FROM:]))
        return (
            header[:4]
            + checksum.to_bytes(4, "little")
            + header[_CHECKED_FROM:]
            + directory
        )

    def entries_of(self, group: int) -> tuple[int, int]:
        """Place and size of a group's entries in the index file."""
        count = min(GROUP_RECORDS, self.records - group * GROUP_RECORDS)
        place = self.entries_at + group * GROUP_RECORDS * ENTRY.size
        return place, count * ENTRY.size

    def data_of(self, group: int) -> tuple[int, int]:
        """Place and size of a group's records in the data file."""
        begin = self.places[group]
        last = group + 1 == len(self.places)
        return begin, (self.data_bytes if last else self.places[group + 1]) - begin

    def parse(self, group: int, data: bytes | bytearray, name: str) -> list[Entry]:
        """The entries of a group.

        Raises:
            LogDamagedError: They are not what was written.
        """
        self.check(group, data, name)
        return [Entry._make(fields) for fields in ENTRY.iter_unpack(data)]

    def check(
        self, group: int, data: bytes | bytearray | memoryview, name: str
    ) -> None:
        """Hold the entries of a group against their checksum.

        Raises:
            LogDamagedError: They are not what was written.
        """
        if crc32(data) != self._entry_crcs[group]:
            raise LogDamagedError(
                f"{name}, entry {group * GROUP_RECORDS} and on: not what was written; "
                "restore the file from a copy"
            )


def load(data: bytes, name: str) -> Index:
    """Read the header and the directory of an index file.

    Args:
        data: The file, or enough of it.
        name: Its name, for messages.

    Raises:
        LogDamagedError: It is not what was written.
        LogError: A newer program made it.
    """
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        raise LogDamagedError(f"{name}: not an index of compacted records; restore it")
    _, checksum, version, group, records, data_bytes, newest_ms, due_ms, _ = (
        HEADER.unpack_from(data)
    )
    if version > VERSION:
        raise LogError(
            f"{name} has format {version}; "
            f"this program reads up to {VERSION}: use a newer one"
        )
    end = HEADER.size + -(-records // max(group, 1)) * GROUP.size
    if (
        group != GROUP_RECORDS
        or end > len(data)
        or crc32(data[_CHECKED_FROM:end]) != checksum
    ):
        raise LogDamagedError(f"{name}: its directory is damaged; restore it")
    groups = list(GROUP.iter_unpack(data[HEADER.size : end]))
    return Index(records, data_bytes, newest_ms, due_ms, groups)
