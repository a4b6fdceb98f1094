"""Choosing records by their index entries: which, how many, how many bytes. No I/O."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from storage.file.block import ENTRY

if TYPE_CHECKING:
    from collections.abc import Collection


class Pick(NamedTuple):
    """Records chosen from an index."""

    extents: list[tuple[int, int, int]]
    """Place in the segment, bytes, records; adjacent records are one extent."""
    sizes: list[int]
    next_offset: int
    looked: int
    full: bool
    """Whether it stopped because of the limit in bytes."""


def pick(
    entries: bytes | bytearray | memoryview,
    offset: int,
    max_count: int,
    max_bytes: int,
    tags: Collection[int] | None,
    *,
    forced: bool,
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
    """
    if tags is None and (found := adjacent(entries, offset, max_bytes)):
        return found
    extents: list[tuple[int, int, int]] = []
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
    return Pick(extents, sizes, offset + seen, max(seen, 1), full)


def adjacent(
    entries: bytes | bytearray | memoryview, offset: int, max_bytes: int
) -> Pick | None:
    """All of these records, where they stand back to back and fit the limit.

    So they do after a batch, and it is found out without a look at each of them.
    """
    count = len(entries) // ENTRY.size
    fields = _entries_of(count).unpack(entries)
    sizes = fields[1::4]
    start, last, last_bytes = fields[0], fields[-4], fields[-3]
    total = last + last_bytes - start
    if total > max_bytes or total != sum(sizes) or 0 in sizes:
        return None
    return Pick([(start, total, count)], list(sizes), offset + count, count, False)


@lru_cache(maxsize=32)
def _entries_of(count: int) -> Struct:
    return Struct("<" + ENTRY.format.removeprefix("<") * count)
