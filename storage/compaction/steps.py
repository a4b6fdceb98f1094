"""What a round does with each record, over many at once. No I/O.

Rows describe records (`storage.compaction_api.ROW`). A map is three arrays of numbers,
see `offset_map`. Bits say which offsets stay, from a base on, that of the first bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.common.native import count_of
from ropeway.storage.compaction.compiled import may_be_compiled
from ropeway.storage.compaction_api import KEYED, ROW, TOMBSTONE
from ropeway.storage.sealed.columns import ROW as SEALED

if TYPE_CHECKING:
    from array import array

    from ropeway.storage.sealed.columns import Buffer
    from ropeway.storage.sealed.index import Block

_DIGEST_BYTES, _TIME_BYTES = 16, 8
_NO_KEY = (0, 0)
_LATEST_MS = (1 << 63) - 1
"""What an entry has room for."""


@may_be_compiled
def note(
    rows: Buffer,
    first: int,
    low: array[int],
    high: array[int],
    offsets: array[int],
    used: int,
    limit: int,
    bits: bytearray,
    base: int,
) -> tuple[int, int]:
    """Put the offsets of keys into a map; records without a key stay, and get a bit.

    Args:
        rows: Of records with offsets from `first` on.
        first: The first one's.
        low: First halves of digests.
        high: Second halves.
        offsets: Offset + 1; 0 where a slot is free.
        used: How many slots are not.
        limit: How many may be.
        bits: Cover all these offsets.
        base: What the first bit stands for.

    Returns:
        How many records were taken before the map was full; how many slots are used.

    Raises:
        ValueError: A row is not whole, the arrays do not have one size, or an offset
            is beyond the bits.
    """
    count = count_of(rows, ROW.size)
    _check_map(low, high, offsets)
    if count and not (base <= first and first + count - base <= len(bits) * 8):
        raise ValueError("offsets beyond the bits")
    taken = 0
    for _, _, _, state, digest in ROW.iter_unpack(rows):
        if used >= limit:
            break
        offset = first + taken
        taken += 1
        if not state & KEYED:
            bits[(offset - base) // 8] |= 1 << (offset - base) % 8
            continue
        halves = halves_of(digest)
        slot = slot_of(halves, low, high, offsets)
        if not offsets[slot]:
            low[slot], high[slot] = halves
            used += 1
        offsets[slot] = offset + 1
    return taken, used


@may_be_compiled
def mark(offsets: array[int], begin: int, end: int, bits: bytearray, base: int) -> None:
    """Give the offsets in some slots a bit."""
    for found in offsets[begin:end]:
        at = found - 1 - base
        if found and 0 <= at < len(bits) * 8:
            bits[at // 8] |= 1 << at % 8


@may_be_compiled
def staying(
    due: Buffer,
    digests: Buffer,
    low: array[int],
    high: array[int],
    offsets: array[int],
    now_ms: int,
) -> bytes:
    """Which compacted records stay, a byte each: not those whose key is in the map.

    Args:
        due: When each may go though nothing replaces it, 64 bits; 0: never.
        digests: Of their keys; zeros where a record has none.
        low: The map, as in `note`.
        high: Likewise.
        offsets: Likewise.
        now_ms: The time.

    Raises:
        ValueError: A digest or a time is not whole, there is not one of each for a
            record, or the arrays do not have one size.
    """
    count = count_of(digests, _DIGEST_BYTES)
    times = memoryview(due).cast("B")
    if len(times) != count * _TIME_BYTES:
        raise ValueError("due times and digests do not agree")
    _check_map(low, high, offsets)
    found = bytearray()
    times = times.cast("q")
    halves_of_all = memoryview(digests).cast("B").cast("Q")
    for at, due_ms in enumerate(times):
        halves = halves_of_all[2 * at], halves_of_all[2 * at + 1]
        found.append(
            not 0 < due_ms <= now_ms
            and (halves == _NO_KEY or not offsets[slot_of(halves, low, high, offsets)])
        )
    return bytes(found)


@may_be_compiled
def lay_out(
    data: Buffer,
    rows: Buffer,
    first: int,
    bits: bytearray,
    base: int,
    now_ms: int,
    keyless_ms: int,
    tombstone_ms: int,
) -> tuple[bytes, bytes]:
    """The records that stay, and `storage.sealed.columns.ROW` of each.

    Args:
        data: Records, back to back.
        rows: Theirs.
        first: The first one's offset.
        bits: Which stay.
        base: What the first bit stands for.
        now_ms: The time.
        keyless_ms: How long a record without a key stays; -1 for ever.
        tombstone_ms: How long a tombstone stays from now on.

    Raises:
        ValueError: A row is not whole, or rows and records do not agree.
    """
    count_of(rows, ROW.size)
    view = memoryview(data)
    kept: list[Buffer] = []
    found = []
    at = 0
    for number, row in enumerate(ROW.iter_unpack(rows)):
        size, tag_hash, store_ms, state, digest = row
        offset = first + number
        record = view[at : at + size]
        at += size
        if at > len(view):
            break
        if not has(bits, offset - base):
            continue
        due_ms = 0
        if not state & KEYED:
            due_ms = min(store_ms + keyless_ms, _LATEST_MS) if keyless_ms >= 0 else 0
        elif state & TOMBSTONE:
            due_ms = now_ms + tombstone_ms
        if 0 < due_ms <= now_ms:
            continue
        found.append(SEALED.pack(offset, size, tag_hash, store_ms, due_ms, digest))
        kept.append(record)
    if at != len(view):
        raise ValueError("rows and records do not agree")
    return b"".join(kept), b"".join(found)


def carry_over(block: Block, stays: bytes | bytearray) -> tuple[bytes, bytes]:
    """The compacted records of a block that stay, and `ROW` of each.

    Args:
        block: Of a sparse segment.
        stays: Which stay, a byte each, 0 or 1.
    """
    data, places, columns = block
    rows = columns.rows()
    kept, its_rows = [], []
    first = stays.find(1)
    while first >= 0:
        end = stays.find(0, first)
        end = columns.records if end < 0 else end
        kept.append(data[places[first] : places[end]])
        its_rows.append(rows[first * SEALED.size : end * SEALED.size])
        first = stays.find(1, end)
    return b"".join(kept), b"".join(its_rows)


def _check_map(low: array[int], high: array[int], offsets: array[int]) -> None:
    if not len(low) == len(high) == len(offsets) > 0:
        raise ValueError("the arrays of a map have one size")


def has(bits: bytearray, at: int) -> bool:
    """Whether a bit is set."""
    return 0 <= at < len(bits) * 8 and bool(bits[at // 8] >> at % 8 & 1)


def halves_of(digest: bytes) -> tuple[int, int]:
    """Both halves of a digest, as a map has them."""
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def slot_of(
    halves: tuple[int, int], low: array[int], high: array[int], offsets: array[int]
) -> int:
    """Where a digest is, or would be."""
    slots = len(offsets)
    slot = halves[0] % slots
    while offsets[slot] and (low[slot], high[slot]) != halves:
        slot += 1
        if slot == slots:
            slot = 0
    return slot
