"""What fuzzers give the twins of the log in files, of compaction and of tiers."""

from __future__ import annotations

import struct
from array import array
from types import SimpleNamespace
from typing import Any
from zlib import crc32

from ropeway.storage.checked_header import CHECKED_FROM
from ropeway.storage.compaction_api import KEYED, ROW, TOMBSTONE
from ropeway.storage.file import block
from ropeway.storage.file.block import ENTRY
from ropeway.storage.sealed.columns import ROW as SEALED
from tests.fuzz.twins import Form, Target

_HEAD = struct.Struct("<BBHI")
HEAD = _HEAD.pack(3, 1, 500, 0)
"""What stands in front of most inputs: numbers that callers choose."""


def cut_head(data: bytes) -> tuple[tuple[int, int, int, int], bytes]:
    head = data[: _HEAD.size].ljust(_HEAD.size, b"\0")
    return _HEAD.unpack(head), data[_HEAD.size :]


def parts(data: bytes) -> list[bytes]:
    """Records as their lengths cut them; what is left may be none."""
    found = []
    while data:
        size = max(int.from_bytes(data[:4], "big"), 1)
        found.append(data[:size])
        data = data[size:]
    return found


def record(body: bytes) -> bytes:
    return struct.pack(">i", 4 + len(body)) + body


RECORDS = b"".join(map(record, (b"", b"a", b"key of a record", b"x" * 200)))


# -- storage.file._native --------------------------------------------------------------


def lay_out_block(form: Form, data: bytes) -> Any:
    (many, words, store_ms, place), rest = cut_head(data)
    runs = [
        SimpleNamespace(
            partition=SimpleNamespace(ordinal=number, key_seed=crc32(b"%d" % number)),
            base_offset=many << number,
            count=len(some),
            appends=[
                (
                    [
                        (
                            one,
                            len(one) - 9,
                            [text_of(one, at) for at in range(words % 4)],
                        )
                        for one in some
                    ],
                    store_ms,
                    None,
                )
            ],
        )
        for number in range(many % 5)
        if (some := parts(rest)[number :: many % 5]) or True
    ]
    return form(runs, 1 << 40, place, 77, 5, store_ms)


def text_of(data: bytes, at: int) -> str:
    return data[at : at + 9].decode("utf-8", "surrogateescape" if at else "replace")


def add_up(form: Form, data: bytes) -> Any:
    (_, _, most, _), rest = cut_head(data)
    return form([(one, 0, ()) for one in parts(rest)], most)


# -- storage.file._reading -------------------------------------------------------------


def blocks(*all_runs: list[tuple[int, int, list[bytes]]]) -> bytes:
    found = b""
    for place, runs in enumerate(all_runs, 1):
        made: list[Any] = [
            SimpleNamespace(
                partition=SimpleNamespace(ordinal=ordinal, key_seed=ordinal),
                base_offset=base_offset,
                count=len(bodies),
                appends=[
                    ([(record(b), len(b), ["k"] * (len(b) % 3)) for b in bodies], 9)
                ],
            )
            for ordinal, base_offset, bodies in runs
        ]
        one = block.Encoded(*block.lay_out(made, 0, 64 * place, 7, 0, place))
        found += one.header + one.body
    return found


BLOCKS = [
    blocks([(1, 5, [b"one", b"two"]), (2, 0, [b""])], [(1, 7, [b"three"])]),
    blocks([(1, 5, [b"x" * 100] * 4)], [(1, 8, [b"y"])], [(3, 1 << 50, [b"z"])]),
]


def gather(form: Form, data: bytes) -> Any:
    """Damage that a checksum notices goes no further: most of it gets a right one."""
    (is_as_it_is, _, _, _), rest = cut_head(data)
    return form(rest if is_as_it_is > 200 else sealed(rest))


def sealed(stretch: bytes) -> bytes:
    found, at = bytearray(stretch), 0
    while at + block.HEADER.size <= len(found):
        length = block.length_at(memoryview(found), at)
        if not block.HEADER.size <= length <= len(found) - at:
            break
        found[at : at + 4] = block.MAGIC
        checked = memoryview(found)[at + CHECKED_FROM : at + length]
        found[at + 4 : at + 8] = crc32(checked).to_bytes(4, "little")
        at += length
    return bytes(found)


def pick(form: Form, data: bytes) -> Any:
    (spare, flags, most, _), rest = cut_head(data)
    tags = None if flags & 1 else frozenset(range(-2, flags % 7))
    # Without tags there are no more entries than are wanted.
    count = len(rest) // ENTRY.size + spare if tags is None else spare
    return form(rest, 1 << 50, count, most << (flags >> 4), tags, bool(flags & 2))


PICKED = [
    HEAD + b"".join(ENTRY.pack(*one, 5) for one in entries)
    for entries in (
        [(64, 10, 0), (74, 20, 1), (94, 5, -1)],
        [(64, 10, 0), (90, 0, 0), (99, 20, 1), (119, 5, 2)],
        [(64, 10, 0), (500, 10, 0), (84, 10, 0)],
        [(64, 100_000, 0)],
    )
]


def are_whole(form: Form, data: bytes) -> Any:
    (count, _, extra, _), rest = cut_head(data)
    sizes = [len(one) for one in parts(rest[: 8 * extra])][:count]
    return [form(rest, sizes), form(memoryview(rest), [*sizes, extra - 9])]


def checksum(form: Form, data: bytes) -> Any:
    (_, _, _, before), rest = cut_head(data)
    return form(rest, before), form(rest)


# -- storage.compaction._native --------------------------------------------------------

SLOTS = 8
KEYS = [bytes([number]) * 16 for number in range(1, 12)]
ROWS = b"".join(
    ROW.pack(size, number, 1000 + number, state, digest)
    for number, (size, state, digest) in enumerate(
        [
            (4, KEYED, KEYS[0]),
            (5, 0, bytes(16)),
            (19, KEYED | TOMBSTONE, KEYS[8]),
            (204, KEYED, KEYS[0]),
        ]
    )
)
LAST_ROWS = b"".join(
    ROW.pack(size, 0, (1 << 63) - 5, 0, bytes(16)) for size in (4, 5, 19, 204)
)
"""As `ROWS`, stored when time ends."""
COMPACTED = [(0, KEYS[0]), (5, KEYS[1]), (0, KEYS[8]), (0, bytes(16)), (900, bytes(16))]
"""When records are due, and their keys."""
DUE_AND_DIGESTS = struct.pack("<5q", *(due_ms for due_ms, _ in COMPACTED)) + b"".join(
    digest for _, digest in COMPACTED
)
SEALED_ROWS = b"".join(
    SEALED.pack(number, 9, 0, 5, due_ms, digest)
    for number, (due_ms, digest) in enumerate(COMPACTED)
)


def a_map(taken: int) -> tuple[array[int], array[int], array[int]]:
    """A map with some keys; one slot stays free, as callers promise."""
    found = array("Q", bytes(8 * SLOTS)), array("Q", bytes(8 * SLOTS))
    offsets = array("Q", bytes(8 * SLOTS))
    for number in range(taken):
        slot = (int.from_bytes(KEYS[number][:8], "little") + number) % SLOTS
        while offsets[slot]:
            slot = (slot + 1) % SLOTS
        found[0][slot], found[1][slot] = struct.unpack("<QQ", KEYS[number])
        offsets[slot] = number + 1
    return *found, offsets


def note(form: Form, data: bytes) -> Any:
    (limit, first, base, sizes), rest = cut_head(data)
    low, high, offsets = a_map(0)
    if sizes == 1:
        low.pop()
    bits = bytearray(base % 9)
    found = form(
        rest,
        first,
        low,
        high,
        offsets,
        0,
        limit % SLOTS,
        bits,
        max(first - base % 7, 0),
    )
    return found, low, high, offsets, bits


def mark(form: Form, data: bytes) -> Any:
    (begin, end, base, size), rest = cut_head(data)
    offsets = array("Q", rest[: len(rest) // 8 * 8])
    bits = bytearray(size % 40)
    return form(offsets, begin, end, bits, base), bits


def staying(form: Form, data: bytes) -> Any:
    (taken, sizes, now_ms, _), rest = cut_head(data)
    low, high, offsets = a_map(taken % SLOTS)
    if sizes > 250:
        low.pop()
    at = len(rest) // 24 * 8 + (sizes == 7)
    return form(rest[:at], rest[at:], low, high, offsets, now_ms)


def lay_out_compacted(form: Form, data: bytes) -> Any:
    (count, first, times, _), rest = cut_head(data)
    rows, records = rest[: count * ROW.size], rest[count * ROW.size :]
    if times & 1:
        # The rows are right more often than damage leaves them.
        sizes = [len(one) for one in parts(records)]
        rows = b"".join(
            size.to_bytes(4, "little") + rows[at * ROW.size + 4 : (at + 1) * ROW.size]
            for at, size in enumerate(sizes)
        )
    keyless_ms = -1 if times & 2 else times
    bits = bytearray(b"\xfd\xff\x7f")
    base = max(first - times % 9, 0)
    return form(records, rows, first, bits, base, 1500, keyless_ms, times)


# -- storage.sealed._native ------------------------------------------------------------


def columns_of(form: Form, data: bytes) -> Any:
    (_, sparse, _, _), rest = cut_head(data)
    return form(rest, bool(sparse & 1))


def cuts_of(form: Form, data: bytes) -> Any:
    (records, shift, most, _), rest = cut_head(data)
    return form(rest, bool(shift & 1), records, most << shift % 33)


def in_runs(form: Form, data: bytes) -> Any:
    (a_run, shift, _, base), rest = cut_head(data)
    return form(rest, base << shift % 33, a_run - 1)


DENSE_AND_SPARSE = [
    *(_HEAD.pack(3, 0, 500, 0) + one[len(HEAD) :] for one in PICKED),
    _HEAD.pack(3, 1, 500, 0) + SEALED_ROWS,
]
KEY_COLUMN = struct.pack("<9Q", *(hash_of << 32 | 9 for hash_of in range(9)))

TARGETS = {
    "ropeway.storage.compaction._native": {
        "lay_out": Target(
            lay_out_compacted,
            [
                _HEAD.pack(4, 1, times, 0) + rows + RECORDS
                for rows in (ROWS, LAST_ROWS)
                for times in (0, 2, 4, 501)
            ],
        ),
        "mark": Target(
            mark, [_HEAD.pack(0, 9, 3, 2) + struct.pack("<9Q", *range(0, 27, 3))]
        ),
        "note": Target(
            note, [_HEAD.pack(limit, 3, 8, 0) + ROWS * 3 for limit in (2, 7, 0)]
        ),
        "staying": Target(
            staying,
            [_HEAD.pack(taken, 0, 9, 0) + DUE_AND_DIGESTS for taken in (0, 2, 7)],
        ),
    },
    "ropeway.storage.file._native": {
        "add_up": Target(add_up, [HEAD + RECORDS, HEAD]),
        "in_runs": Target(in_runs, [HEAD + KEY_COLUMN, HEAD + KEY_COLUMN[::-1]]),
        "lay_out": Target(lay_out_block, [HEAD + RECORDS, HEAD + RECORDS * 3, HEAD]),
    },
    "ropeway.storage.file._reading": {
        "are_whole": Target(are_whole, [HEAD + RECORDS, HEAD + RECORDS * 2]),
        "crc32": Target(checksum, [HEAD + RECORDS, HEAD + bytes(1000)]),
        "gather": Target(gather, [HEAD + one for one in BLOCKS]),
        "pick": Target(pick, PICKED),
    },
    "ropeway.storage.sealed._native": {
        "columns_of": Target(columns_of, DENSE_AND_SPARSE),
        "crc32": Target(checksum, [HEAD + RECORDS, HEAD + bytes(1000)]),
        "cuts_of": Target(cuts_of, DENSE_AND_SPARSE),
        "in_runs": Target(in_runs, [HEAD + KEY_COLUMN, HEAD + KEY_COLUMN[::-1]]),
    },
}
"""By compiled module and function."""
