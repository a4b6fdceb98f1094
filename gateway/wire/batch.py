"""Batches (320): several messages of one queue in one request's body.

     0      4         8         12     16
     +------+---------+---------+------+-----------------+-----------------------+
     | size | magic 0 | bodyCRC | flag | body i32 + bytes | properties i16 + bytes |
     +------+---------+---------+------+-----------------+-----------------------+

repeated. The broker stores single messages; bodyCRC is 0 from most clients and is
computed anew.

Source: MessageDecoder.encodeMessage and decodeMessage, RocketMQ 5.3.4.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_FRONT = struct.Struct(">iiiii")
_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_MIN_BYTES = _FRONT.size + _I16.size

SLICE_MESSAGES = 1024
"""Messages that are worked on without a pause: half a millisecond where the compiled
form makes them, and some where they are taken apart."""
SLICE_BYTES = 128 * 1024
"""The same in bytes, where they are taken apart: so much of short properties takes
three milliseconds."""


class BatchEntry(NamedTuple):
    """One message of a batch."""

    flag: int
    body: bytes
    properties: str


def has_more_than(allowed: int, data: bytes) -> bool:
    """Whether a batch has more messages than that, before any of them is read."""
    return count_up_to(allowed + 1, data) > allowed


def count_up_to(most: int, data: bytes) -> int:
    """How many messages a batch has, `most` at most, before any of them is read.

    0 where it is too short for so many, as most are. What is no message counts as the
    last one; who reads it refuses the batch.
    """
    if len(data) < most * _MIN_BYTES:
        return 0
    at = count = 0
    total, last = len(data), len(data) - _I32.size
    size_at = _I32.unpack_from
    while at < total and count < most:
        count += 1
        if at > last:
            break
        (size,) = size_at(data, at)
        if size < _MIN_BYTES:
            break
        at += size
    return count


def cut(
    data: bytes, messages: int = SLICE_MESSAGES, size_bytes: int = SLICE_BYTES
) -> Iterator[bytes]:
    """Cut a batch into batches that each take a few milliseconds to work on.

    They have so many messages at most, and end with the one that makes them so long.
    What is no batch is cut anywhere.
    """
    began = at = count = 0
    while at < len(data):
        at = _after(data, at) or len(data)
        count += 1
        if count == messages or at - began >= size_bytes or at >= len(data):
            yield data[began:at]
            began, count = at, 0


def _after(data: bytes, at: int) -> int:
    """Where the message after one begins; 0 where that is none."""
    if at + _I32.size > len(data):
        return 0
    size: int = _I32.unpack_from(data, at)[0]
    return at + size if size >= _MIN_BYTES else 0


def decode_batch(data: bytes, before: int = 0) -> list[BatchEntry]:
    """Take a batch apart.

    Args:
        data: The batch, or a part of it.
        before: How many entries stand in front of that part; errors count them.

    Raises:
        MessageError: A length is impossible or text is not UTF-8; nothing of the
            batch may be stored then.
    """
    entries: list[BatchEntry] = []
    at = 0
    total = len(data)
    front_bytes = _FRONT.size
    try:
        while at < total:
            size, _, _, flag, body_bytes = _FRONT.unpack_from(data, at)
            after = at + size
            if size < _MIN_BYTES or after > total:
                raise MessageError(
                    f"batch entry {before + len(entries)} of {size} bytes; "
                    f"allowed: {_MIN_BYTES} to {total - at}"
                )
            body = at + front_bytes
            end = body + body_bytes
            properties = end + _I16.size
            if body_bytes < 0 or properties > after:
                raise MessageError(
                    f"batch entry {before + len(entries)} of {size} bytes has a body "
                    f"of {body_bytes}"
                )
            (length,) = _I16.unpack_from(data, end)
            if length < 0 or properties + length != after:
                raise MessageError(
                    f"batch entry {before + len(entries)} of {size} bytes has "
                    f"properties of {length}"
                )
            text = data[properties:after].decode()
            entries.append(BatchEntry(flag, data[body:end], text))
            at = after
    except UNREADABLE as error:
        number = before + len(entries)
        raise MessageError(f"batch entry {number}: {reason_of(error)}") from error
    return entries


def encode_batch(entries: list[BatchEntry]) -> bytes:
    """Put messages into one request's body.

    Raises:
        MessageError: A member of an entry does not fit its field.
    """
    parts = []
    for index, entry in enumerate(entries):
        try:
            properties = entry.properties.encode()
            size = _MIN_BYTES + len(entry.body) + len(properties)
            parts += [
                _FRONT.pack(size, 0, 0, entry.flag, len(entry.body)),
                entry.body,
                _I16.pack(len(properties)),
                properties,
            ]
        except (struct.error, UnicodeEncodeError) as error:
            raise MessageError(f"batch entry {index}: {error}") from error
    return b"".join(parts)
