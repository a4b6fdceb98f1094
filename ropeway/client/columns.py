"""Stored messages as columns: for who reads millions and wants no object for each."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from ropeway.client.decompression import inflate
from ropeway.client.errors import BadResponseError
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.message import head

if TYPE_CHECKING:
    from ropeway.gateway.wire.frame import Buffer

_I16 = struct.Struct(">h")
_SYS_FLAG = struct.Struct(">36xi")
_ZLIB_TYPES = (0, 3)
"""Source: CompressionType.findByValue, RocketMQ 5.3.4; 0 is from before 5.0."""
_HOST_FLAGS = stored.BORN_HOST_V6_FLAG | stored.STORE_HOST_V6_FLAG
_V4, _V6 = 8, 20


class Columns(NamedTuple):
    """Messages of one queue in the order of their offsets, a list for each field."""

    offsets: list[int]
    store_ms: list[int]
    born_ms: list[int]
    bodies: list[bytes]
    """Decompressed, where this client can, and they become no longer than 16 MiB."""
    properties: list[bytes]
    """In wire form: see `gateway.wire.properties`."""


def read_columns(data: Buffer, begin: int, end: int) -> Columns:
    """Read a pull's body.

    Args:
        data: Stored messages one behind the other.
        begin: The first offset that is wanted.
        end: One past the last one.

    Raises:
        BadResponseError: The bytes are not stored messages.
    """
    try:
        return _read(bytes(data), begin, end)
    except (struct.error, IndexError, MessageError) as error:
        raise BadResponseError(f"what a pull gave is no messages: {error}") from error


def _read(data: bytes, begin: int, end: int) -> Columns:
    columns = Columns([], [], [], [], [])
    offsets, store_times, born_times, bodies, properties = columns
    total = len(data)
    at = 0
    while at < total:
        (sys_flag,) = _SYS_FLAG.unpack_from(data, at)
        front = _front(sys_flag)
        size, magic, _, _, _, offset, _, _, born_ms, _, store_ms, _, _, _, length = (
            front.unpack_from(data, at)
        )
        body_at = at + front.size
        body_end = body_at + length
        after = at + size
        # A topic of one byte at least, and the length of the properties, follow.
        if length < 0 or not body_end + 3 <= after <= total:
            raise MessageError(f"message of {size} bytes, its body of {length}")
        if begin <= offset < end:
            if magic == stored.MAGIC_V1:
                topic_end = body_end + 1 + data[body_end]
            elif magic == stored.MAGIC_V2:
                topic_end = body_end + 2 + _I16.unpack_from(data, body_end)[0]
            else:
                raise MessageError(f"message has magic {magic & 0xFFFFFFFF:#x}")
            body = data[body_at:body_end]
            if sys_flag & stored.COMPRESSED_FLAG:
                body = decompressed(body, sys_flag)
            offsets.append(offset)
            store_times.append(store_ms)
            born_times.append(born_ms)
            bodies.append(body)
            properties.append(data[topic_end + 2 : after])
        at = after
    return columns


_V4_FRONT = head(_V4, _V4)


def _front(sys_flag: int) -> struct.Struct:
    if not sys_flag & _HOST_FLAGS:
        return _V4_FRONT
    return head(
        _V6 if sys_flag & stored.BORN_HOST_V6_FLAG else _V4,
        _V6 if sys_flag & stored.STORE_HOST_V6_FLAG else _V4,
    )


def decompressed(body: bytes, sys_flag: int) -> bytes:
    """A body as it was before its sender compressed it, where this client can."""
    if (sys_flag & stored.COMPRESSION_TYPE_MASK) >> 8 not in _ZLIB_TYPES:
        return body
    inflated = inflate(body)
    return body if inflated is None else inflated
