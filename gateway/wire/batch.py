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
from typing import NamedTuple

from gateway.wire.errors import MessageError

_FRONT = struct.Struct(">iiiii")
_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_MIN_BYTES = _FRONT.size + _I16.size


class BatchEntry(NamedTuple):
    """One message of a batch."""

    flag: int
    body: bytes
    properties: str


def has_more_than(allowed: int, data: bytes) -> bool:
    """Whether a batch has more messages than that, before any of them is read."""
    # As most are: too short for so many.
    if len(data) <= allowed * _MIN_BYTES:
        return False
    at = 0
    for _ in range(allowed):
        if at + _I32.size > len(data):
            return False
        (size,) = _I32.unpack_from(data, at)
        if size < _MIN_BYTES:
            # No batch, as whoever reads it will say.
            return False
        at += size
    return at < len(data)


def decode_batch(data: bytes) -> list[BatchEntry]:
    """Take a batch apart.

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
                    f"batch entry {len(entries)} of {size} bytes; "
                    f"allowed: {_MIN_BYTES} to {total - at}"
                )
            body = at + front_bytes
            end = body + body_bytes
            properties = end + _I16.size
            if body_bytes < 0 or properties > after:
                raise MessageError(
                    f"batch entry {len(entries)} of {size} bytes has a body of "
                    f"{body_bytes}"
                )
            (length,) = _I16.unpack_from(data, end)
            if length < 0 or properties + length != after:
                raise MessageError(
                    f"batch entry {len(entries)} of {size} bytes has properties of "
                    f"{length}"
                )
            text = data[properties:after].decode()
            entries.append(BatchEntry(flag, data[body:end], text))
            at = after
    except (struct.error, UnicodeDecodeError) as error:
        raise MessageError(f"batch entry {len(entries)}: {error}") from error
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
