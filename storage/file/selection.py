"""Choosing records by their index entries: which, how many, how many bytes. No I/O."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from ropeway.common.native import count_of
from ropeway.storage.api import Filter
from ropeway.storage.file.block import ENTRY, LENGTH
from ropeway.storage.file.compiled import may_be_compiled

if TYPE_CHECKING:
    from collections.abc import Collection

ALL = Filter()
"""Wants every record."""
Extent = tuple[int, int, int]
"""Place in the segment, bytes, records; adjacent records are one extent."""

Pick = tuple[list[Extent], list[int], int, int, bool]
"""Extents, the size of each record, the next offset, how many entries were looked at,
and whether it stopped because of the limit in bytes."""

GAP_BYTES = 4096
"""Records so near to each other are fetched at once: a page costs less than a call."""

_ENTRY_WORDS = ENTRY.size // 4
_length = LENGTH.unpack_from


@may_be_compiled
def pick(
    entries: bytes | bytearray | memoryview,
    offset: int,
    max_count: int,
    max_bytes: int,
    tags: Collection[int] | None,
    forced: bool,
    /,
) -> Pick:
    """Choose records of one segment.

    Args:
        entries: Those to look at, as in the index; at least one, and without tags at
            most `max_count`.
        offset: That of the first of them.
        max_count: At most so many records.
        max_bytes: Stop before the record that would go over.
        tags: Only records with one of these hashes; None for all.
        forced: Take the first record that matches, however long it is.

    Raises:
        ValueError: There is no entry, or one is not whole.
    """
    count_of(entries, ENTRY.size, least=1)
    if tags is None and (found := _adjacent(entries, offset, max_bytes)):
        return found
    extents: list[Extent] = []
    sizes: list[int] = []
    start = stop = began = 0
    total = seen = 0
    full = False
    for place, size, tag_hash, _ in ENTRY.iter_unpack(entries):
        if size and (tags is None or tag_hash in tags):
            total += size
            if total > max_bytes and (sizes or not forced):
                full = True
                break
            if place != stop:
                if stop:
                    extents.append((start, stop - start, len(sizes) - began))
                start = place
                began = len(sizes)
            stop = place + size
            sizes.append(size)
        seen += 1
        if len(sizes) == max_count:
            break
    if stop:
        extents.append((start, stop - start, len(sizes) - began))
    return extents, sizes, offset + seen, max(seen, 1), full


def _adjacent(
    entries: bytes | bytearray | memoryview, offset: int, max_bytes: int
) -> Pick | None:
    """All of these records, where they stand back to back and fit the limit.

    So they do after a batch, and it is found out without a look at each of them.
    """
    words = memoryview(entries).cast("I")
    sizes = words[1::_ENTRY_WORDS].tolist()
    start, *places = accumulate(sizes, initial=words[0])
    total = places[-1] - start
    if total > max_bytes or words[_ENTRY_WORDS::_ENTRY_WORDS].tolist() != places[:-1]:
        return None
    if 0 in sizes:
        return None
    return [(start, total, len(sizes))], sizes, offset + len(sizes), len(sizes), False


def grouped(
    extents: list[Extent],
) -> list[tuple[int, int, list[Extent]]]:
    """Extents that are near each other, to be fetched at once: place, size, extents."""
    groups: list[tuple[int, int, list[Extent]]] = []
    for extent in extents:
        place, size, _ = extent
        if groups:
            start, length, members = groups[-1]
            if 0 <= place - (start + length) <= GAP_BYTES:
                members.append(extent)
                groups[-1] = (start, place + size - start, members)
                continue
        groups.append((place, size, [extent]))
    return groups


@may_be_compiled
def are_whole(records: bytes | memoryview, sizes: list[int], /) -> bool:
    """Whether records of these sizes stand there back to back, by what they say."""
    at = 0
    for size in sizes:
        if (
            size < LENGTH.size
            or at + size > len(records)
            or _length(records, at)[0] != size
        ):
            return False
        at += size
    return True
