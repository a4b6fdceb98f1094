"""Stored messages: what logs keep, pulls answer with, and clients decode.

     0         4       8        12        16     20           28            36
     +---------+-------+--------+---------+------+------------+-------------+
     | size    | magic | bodyCRC| queueId | flag | queueOffset| message id  |
     +---------+-------+--------+---------+------+------------+-------------+
     from 36 on; a host is 4 bytes of address, or 16 where its flag says IPv6
     | sysFlag i32 | bornTimestamp i64 | bornHost 4+4 | storeTimestamp i64
     | storeHost 4+4 | reconsumeTimes i32 | preparedTransactionOffset i64
     | body i32+bytes | topic i8+bytes (V2: i16+bytes) | properties i16+bytes

All numbers are big endian. A topic of more than 127 bytes makes it a V2 message.

Source: MessageDecoder.java, MessageVersion.java and MessageSysFlag.java, 5.3.4.
"""

from __future__ import annotations

import ipaddress
import struct
import zlib
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.wire.frame import Buffer

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477

COMPRESSED_FLAG = 0x1
TRANSACTION_MASK = 0xC
COMMITTED_FLAG = 0x8
BORN_HOST_V6_FLAG = 0x10
STORE_HOST_V6_FLAG = 0x20
COMPRESSION_TYPE_MASK = 0x700

MAX_TOPIC_BYTES_V1 = 127
MAX_PROPERTIES_BYTES = 32767

V4_HOST_BYTES = 8
"""A packed IPv4 address and port."""
V6_HOST_BYTES = 20
"""A packed IPv6 address and port."""

SYS_FLAG = struct.Struct(">i")
SYS_FLAG_AT = 36
"""Where a stored message has its system flags."""

_V4_BYTES = 4
_V6_BYTES = 16
_FRONT = struct.Struct(">iiiiiqqiq")
_TIMES = struct.Struct(">iqi")
_MAGIC_AND_FLAGS = struct.Struct(">4xi28xi")
_STORE_MS_AT = 56
_BODY_SIZE_AT = 84
"""With addresses of IPv4."""
_HOST_FLAGS = BORN_HOST_V6_FLAG | STORE_HOST_V6_FLAG
_I64 = struct.Struct(">q")
_I32 = struct.Struct(">i")
_I16 = struct.Struct(">h")
_U8 = struct.Struct(">B")
_MIN_BYTES = 91
_CRC_MASK = 0x7FFFFFFF
_PORT_MAX = 0xFFFF


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A stored message, taken apart; bodies stay as they were sent."""

    topic: str
    queue_id: int
    queue_offset: int
    message_id: int
    body: bytes
    properties: str
    """Still in wire form: see `gateway.wire.properties`."""
    flag: int = 0
    sys_flag: int = 0
    born_ms: int = 0
    born_host: tuple[str, int] = ("127.0.0.1", 0)
    store_ms: int = 0
    store_host: tuple[str, int] = ("127.0.0.1", 0)
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    body_crc: int | None = None
    """CRC-32 of the body without its top bit; None where it is to be computed."""


def crc(body: Buffer) -> int:
    """RocketMQ's body checksum: CRC-32 without its top bit."""
    return zlib.crc32(body) & _CRC_MASK


def pack_host(host: str, port: int) -> bytes:
    """An address and a port as stored messages carry them: 8 or 20 bytes."""
    return ipaddress.ip_address(host).packed + _I32.pack(port)


def host_flags(born_host: bytes, store_host: bytes) -> int:
    """The system flags that say how long the two packed hosts are."""
    flags = 0
    if len(born_host) > V4_HOST_BYTES:
        flags |= BORN_HOST_V6_FLAG
    if len(store_host) > V4_HOST_BYTES:
        flags |= STORE_HOST_V6_FLAG
    return flags


def topic_field(topic: str) -> tuple[int, bytes]:
    """The magic number and the topic with its length, for `assemble`."""
    name = topic.encode()
    if len(name) > MAX_TOPIC_BYTES_V1:
        return MAGIC_V2, _I16.pack(len(name)) + name
    return MAGIC_V1, bytes((len(name),)) + name


class Front(NamedTuple):
    """The fields before the body, in their order; the hosts are packed."""

    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    message_id: int
    sys_flag: int
    """Agrees with the hosts' lengths: `host_flags`."""
    born_ms: int
    born_host: bytes
    store_ms: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int = 0


def assemble(front: Front, body: Buffer, topic: bytes, properties: bytes) -> bytes:
    """Make a stored message of parts that are already checked and packed.

    Args:
        front: All before the body but the two sizes.
        body: As it was sent.
        topic: By `topic_field`, as is the magic number.
        properties: In wire form.
    """
    packer = head(len(front.born_host), len(front.store_host))
    size = packer.size + len(body) + len(topic) + 2 + len(properties)
    return b"".join(
        (
            packer.pack(size, *front, len(body)),
            body,
            topic,
            _I16.pack(len(properties)),
            properties,
        )
    )


@cache
def head(born_bytes: int, store_bytes: int) -> struct.Struct:
    """All that comes before the body, for packed hosts of these lengths."""
    return struct.Struct(
        f"{_FRONT.format}{born_bytes}sq{store_bytes}s{_TIMES.format[1:]}"
    )


def encode(message: Message) -> bytes:
    """Make the bytes of a stored message.

    Raises:
        MessageError: A member does not fit its field.
    """
    sys_flag = message.sys_flag & ~(BORN_HOST_V6_FLAG | STORE_HOST_V6_FLAG)
    body_crc = crc(message.body) if message.body_crc is None else message.body_crc
    try:
        magic, topic = topic_field(message.topic)
        born, store = pack_host(*message.born_host), pack_host(*message.store_host)
        properties = message.properties.encode()
        if len(properties) > MAX_PROPERTIES_BYTES:
            raise MessageError(
                f"properties of {len(properties)} bytes; "
                f"allowed: {MAX_PROPERTIES_BYTES}"
            )
        front = Front(
            magic,
            body_crc,
            message.queue_id,
            message.flag,
            message.queue_offset,
            message.message_id,
            sys_flag | host_flags(born, store),
            message.born_ms,
            born,
            message.store_ms,
            store,
            message.reconsume_times,
            message.prepared_transaction_offset,
        )
        return assemble(front, message.body, topic, properties)
    except (struct.error, ValueError) as error:
        raise MessageError(f"a member does not fit its field: {error}") from error


def decode(data: Buffer) -> Message:
    """Take one stored message apart.

    Raises:
        MessageError: The bytes are not exactly one stored message.
    """
    view = memoryview(data)
    try:
        return _decode(view)
    except UNREADABLE as error:
        raise MessageError(f"not a stored message: {reason_of(error)}") from error


def _decode(view: memoryview) -> Message:
    front = _FRONT.unpack_from(view)
    size, magic, body_crc, queue_id, flag, offset, message_id, sys_flag, born = front
    if size != len(view):
        raise MessageError(f"stored message of {len(view)} bytes says {size}")
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise MessageError(f"stored message has magic {magic & 0xFFFFFFFF:#x}")
    born_host, at = _host(view, _FRONT.size, sys_flag & BORN_HOST_V6_FLAG)
    (store_ms,) = _I64.unpack_from(view, at)
    store_host, at = _host(view, at + 8, sys_flag & STORE_HOST_V6_FLAG)
    reconsume_times, prepared, body_bytes = _TIMES.unpack_from(view, at)
    body, at = _field(view, at, body_bytes, _TIMES.size)
    if magic == MAGIC_V1:
        (topic_bytes,) = _U8.unpack_from(view, at)
        if topic_bytes > MAX_TOPIC_BYTES_V1:
            raise MessageError(
                f"topic of {topic_bytes} bytes; allowed: {MAX_TOPIC_BYTES_V1}"
            )
        topic, at = _field(view, at, topic_bytes, 1)
    else:
        topic, at = _field(view, at, _I16.unpack_from(view, at)[0], 2)
    properties, at = _field(view, at, _I16.unpack_from(view, at)[0], 2)
    if at != size:
        raise MessageError(f"stored message of {size} bytes ends after {at}")
    return Message(
        topic=topic.decode(),
        queue_id=queue_id,
        queue_offset=offset,
        message_id=message_id,
        body=body,
        properties=properties.decode(),
        flag=flag,
        sys_flag=sys_flag,
        born_ms=born,
        born_host=born_host,
        store_ms=store_ms,
        store_host=store_host,
        reconsume_times=reconsume_times,
        prepared_transaction_offset=prepared,
        body_crc=body_crc,
    )


def _host(view: memoryview, at: int, is_v6: int) -> tuple[tuple[str, int], int]:
    end = at + (_V6_BYTES if is_v6 else _V4_BYTES)
    (port,) = _I32.unpack_from(view, end)
    host = _address(bytes(view[at:end]))
    if not 0 <= port <= _PORT_MAX:
        raise MessageError(f"port {port} in a stored message; allowed: 0 to 65535")
    return (host, port), end + 4


@lru_cache(maxsize=4096)
def _address(packed: bytes) -> str:
    return str(ipaddress.ip_address(packed))


def _field(view: memoryview, at: int, length: int, prefix: int) -> tuple[bytes, int]:
    start = at + prefix
    end = start + length
    if length < 0 or end > len(view):
        raise MessageError(f"field of {length} bytes at {start} of {len(view)}")
    return bytes(view[start:end]), end


def split(data: Buffer) -> Iterator[memoryview]:
    """Cut a pull's body into its stored messages.

    Raises:
        MessageError: A size is impossible; messages before it have been given.
    """
    view = memoryview(data)
    at = 0
    while at < len(view):
        if at + 4 > len(view):
            raise MessageError(f"{len(view) - at} bytes left over after a message")
        (size,) = _I32.unpack_from(view, at)
        if not _MIN_BYTES <= size <= len(view) - at:
            raise MessageError(
                f"stored message of {size} bytes; "
                f"allowed: {_MIN_BYTES} to {len(view) - at}"
            )
        yield view[at : at + size]
        at += size


def view_properties(data: Buffer) -> bytes:
    """The properties of a stored message that is known to be whole, in wire form."""
    return bytes(_properties_part(data))


def view_pairs(data: Buffer) -> bytes:
    """The same for a search: with a 0x02 before each pair, and behind each."""
    return b"".join((b"\x02", _properties_part(data), b"\x02"))


def view_body_size_and_pairs(data: Buffer) -> tuple[int, bytes]:
    """How many bytes its body has, and its properties as `view_pairs`, less the end.

    For who looks at millions of messages.
    """
    magic, sys_flag = _MAGIC_AND_FLAGS.unpack_from(data)
    at = _BODY_SIZE_AT
    if sys_flag & _HOST_FLAGS:
        at += 12 * bool(sys_flag & BORN_HOST_V6_FLAG)
        at += 12 * bool(sys_flag & STORE_HOST_V6_FLAG)
    (size,) = _I32.unpack_from(data, at)
    at += 4 + size
    if magic == MAGIC_V1:
        at += 3 + data[at]
    else:
        at += 4 + _I16.unpack_from(data, at)[0]
    return size, b"\x02" + data[at:]


def view_store_ms(data: Buffer) -> int:
    """When it was stored, in milliseconds since 1970."""
    at = _STORE_MS_AT
    if SYS_FLAG.unpack_from(data, SYS_FLAG_AT)[0] & BORN_HOST_V6_FLAG:
        at += 12
    store_ms: int = _I64.unpack_from(data, at)[0]
    return store_ms


def _properties_part(data: Buffer) -> memoryview:
    view = memoryview(data)
    magic, sys_flag = _MAGIC_AND_FLAGS.unpack_from(view)
    at = _BODY_SIZE_AT
    if sys_flag & _HOST_FLAGS:
        at += 12 * bool(sys_flag & BORN_HOST_V6_FLAG)
        at += 12 * bool(sys_flag & STORE_HOST_V6_FLAG)
    at += 4 + _I32.unpack_from(view, at)[0]
    if magic == MAGIC_V1:
        return view[at + 3 + view[at] :]
    return view[at + 4 + _I16.unpack_from(view, at)[0] :]
