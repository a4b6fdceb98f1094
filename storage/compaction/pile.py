"""One file of compacted records while it grows: bytes, entries, checksums. No I/O."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from ropeway.storage.compaction.layout import ENTRY, GROUP_RECORDS, Index

if TYPE_CHECKING:
    from ropeway.storage.compaction.steps import Buffer

_GROUP_BYTES = GROUP_RECORDS * ENTRY.size
_offset_and_place = Struct("<QI").unpack_from


class Waiting(NamedTuple):
    """Bytes that are next in the file."""

    data: bytearray
    cuts: list[int]
    """Where a group of records ends in them."""


class Pile:
    """Takes records in; gives bytes to write, and the index in the end."""

    def __init__(self) -> None:
        self.entries = bytearray()
        self.place = 0
        """Where the next record will be."""
        self._waiting = bytearray()
        self._newest_ms = self._due_ms = 0
        self._groups_taken = 0
        """Groups whose ends are known to have been taken."""
        self._crcs: list[int] = []
        self._crc = 0
        """Of the group that is not whole yet."""

    @property
    def records(self) -> int:
        """How many there are."""
        return len(self.entries) // ENTRY.size

    @property
    def first(self) -> int:
        """The first one's offset."""
        return _offset_and_place(self.entries)[0]  # type: ignore[no-any-return]

    @property
    def last(self) -> int:
        """The last one's offset."""
        at = len(self.entries) - ENTRY.size
        return _offset_and_place(self.entries, at)[0]  # type: ignore[no-any-return]

    @property
    def waiting_bytes(self) -> int:
        """How much has not been taken yet."""
        return len(self._waiting)

    def add(
        self, records: Buffer, entries: Buffer, newest_ms: int, due_ms: int
    ) -> None:
        """Put records behind the others, with entries that have their places."""
        self._waiting += records
        self.entries += entries
        self.place += len(records)
        self._newest_ms = max(self._newest_ms, newest_ms)
        if due_ms:
            self._due_ms = min(self._due_ms or due_ms, due_ms)

    def take(self) -> Waiting:
        """What is next in the file; `sum_up` has to see it before the next is."""
        data, self._waiting = self._waiting, bytearray()
        begin = self.place - len(data)
        whole = self.records // GROUP_RECORDS
        ends = [
            _offset_and_place(self.entries, group * _GROUP_BYTES)[1]
            if group * GROUP_RECORDS < self.records
            else self.place
            for group in range(self._groups_taken + 1, whole + 1)
        ]
        self._groups_taken = whole
        return Waiting(data, [end - begin for end in ends])

    def sum_up(self, waiting: Waiting) -> None:
        """Add bytes to the checksums of their groups. In any thread, one by one."""
        view = memoryview(waiting.data)
        at = 0
        for cut in waiting.cuts:
            self._crcs.append(crc32(view[at:cut], self._crc))
            self._crc = 0
            at = cut
        self._crc = crc32(view[at:], self._crc)

    def index(self) -> Index:
        """The index of the file, when all was taken and summed up. In any thread."""
        if self.records % GROUP_RECORDS:
            self._crcs.append(self._crc)
        view = memoryview(self.entries)
        groups = []
        for group, data_crc in enumerate(self._crcs):
            entries = view[group * _GROUP_BYTES : (group + 1) * _GROUP_BYTES]
            offset, place = _offset_and_place(entries)
            groups.append((offset, place, data_crc, crc32(entries)))
        return Index(self.records, self.place, self._newest_ms, self._due_ms, groups)
