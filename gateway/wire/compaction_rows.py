"""What compaction needs to know of stored messages, a row for each. No I/O.

     0  size      u32   of the message
     4  tag hash  i32   Java's String.hashCode of the tag; 0 without one
     8  store_ms  i64
    16  state     u64   1 there is a key, 2 the body is empty
    24  digest    16s   the first half of the key's SHA-256; zeros without a key

Little-endian. The whole KEYS is the key; one of blanks is none.
"""

from __future__ import annotations

from hashlib import sha256
from struct import Struct, error
from typing import TYPE_CHECKING

from ropeway.gateway.wire import message, record_rewrite
from ropeway.gateway.wire.compiled import may_be_compiled
from ropeway.gateway.wire.properties import KEYS, NAME_END, TAGS, VALUE_END, tag_hash

if TYPE_CHECKING:
    from ropeway.gateway.wire.frame import Buffer

ROW = Struct("<IiqQ16s")
KEYED, TOMBSTONE = 1, 2
_DIGEST_BYTES = 16
_NO_DIGEST = bytes(_DIGEST_BYTES)
_PAIR_END = VALUE_END.encode()
_KEYS = f"{VALUE_END}{KEYS}{NAME_END}".encode()
_TAGS = f"{VALUE_END}{TAGS}{NAME_END}".encode()
_size_at = Struct(">I").unpack_from
_LEAST_BYTES = 84
_LEAST_AFTER_BODY_BYTES = 4
"""A topic of a letter, and the lengths of it and of the properties."""


@may_be_compiled
def describe(data: Buffer) -> bytes:
    """A row of each of some messages that stand back to back.

    Raises:
        ValueError: They are no stored messages.
    """
    view = memoryview(data)
    rows = []
    at = 0
    try:
        while at < len(view):
            (size,) = _size_at(view, at)
            if size < _LEAST_BYTES or at + size > len(view):
                raise ValueError("no stored messages")
            record = view[at : at + size]
            _check(record)
            rows.append(_row(record))
            at += size
    except (error, IndexError) as cut:
        raise ValueError("no stored messages") from cut
    return b"".join(rows)


def _check(record: memoryview) -> None:
    try:
        topic_at = record_rewrite.parts_of(record).topic_at
    except ValueError as cut:
        raise ValueError("no stored messages") from cut
    if topic_at + _LEAST_AFTER_BODY_BYTES > len(record):
        raise ValueError("no stored messages")


def key_of(record: Buffer) -> tuple[bytes | None, bool]:
    """The key, None without one; and whether the body is empty."""
    size, pairs = message.view_body_size_and_pairs(record)
    key = _value(pairs, _KEYS)
    return (key if key.strip() else None), not size


def tag_hash_of(record: Buffer) -> int:
    """The hash of the tag; 0 without one."""
    tag = _value(message.view_body_size_and_pairs(record)[1], _TAGS)
    return tag_hash(tag.decode()) if tag else 0


def _row(record: memoryview) -> bytes:
    key, is_tombstone = key_of(record)
    state = (key is not None) * KEYED | is_tombstone * TOMBSTONE
    digest = _NO_DIGEST
    if key is not None:
        digest = sha256(key, usedforsecurity=False).digest()[:_DIGEST_BYTES]
    store_ms = message.view_store_ms(record)
    return ROW.pack(len(record), tag_hash_of(record), store_ms, state, digest)


def _value(pairs: bytes, name: bytes) -> bytes:
    # Of several the last one counts, as where properties are parsed.
    at = pairs.rfind(name)
    if at < 0:
        return b""
    at += len(name)
    end = pairs.find(_PAIR_END, at)
    return pairs[at:end] if end >= 0 else pairs[at:]
