"""Message ids: where a message lives, in the 64 bits that RocketMQ has for it.

     63    62     61 ... 52      51 ... 0
     +---+-------+------------+----------+
     | 0 | retry | partition  | offset   |
     +---+-------+------------+----------+

It stands where RocketMQ has the commit log offset: in every stored message, and in
the *offsetMsgId* that clients see: address (4 or 16 bytes), port (4), id (8), as
upper-case hex. The retry bit says that the topic is `%RETRY%group` and not the one
that a consumer names when it sends a message back.

Source: MessageDecoder.createMessageId, RocketMQ 5.3.4.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from ropeway.gateway.wire.errors import MessageError

_OFFSET_BITS = 52
_PARTITION_BITS = 10
MAX_OFFSET = (1 << _OFFSET_BITS) - 1
MAX_PARTITION = (1 << _PARTITION_BITS) - 1
_MAX_ID = (1 << (_OFFSET_BITS + _PARTITION_BITS + 1)) - 1

_PORT_AND_ID_BYTES = 12
_DIGITS = {2 * (4 + _PORT_AND_ID_BYTES), 2 * (16 + _PORT_AND_ID_BYTES)}
_PORT_MAX = 0xFFFF


class MessageId(NamedTuple):
    """The parts of a message id."""

    retry: bool
    partition: int
    offset: int


class OffsetMsgId(NamedTuple):
    """The parts of an offsetMsgId: the broker to ask, and the message id."""

    host: str
    port: int
    message_id: int


def pack(partition: int, offset: int, *, retry: bool = False) -> int:
    """Put a partition (0 to 1023) and an offset (0 to 2^52 - 1) into one number.

    Raises:
        MessageError: One of them is out of range; nothing is ever wrapped.
    """
    if not 0 <= partition <= MAX_PARTITION:
        raise MessageError(f"partition {partition}; allowed: 0 to {MAX_PARTITION}")
    if not 0 <= offset <= MAX_OFFSET:
        raise MessageError(f"offset {offset}; allowed: 0 to {MAX_OFFSET}")
    return base(partition, retry=retry) | offset


def base(partition: int, *, retry: bool) -> int:
    """The id of a partition's offset 0; adding a checked offset gives any other."""
    return (retry << _PARTITION_BITS | partition) << _OFFSET_BITS


def unpack(message_id: int) -> MessageId:
    """Take a message id apart.

    Raises:
        MessageError: The reserved bit is set, or it is no 64-bit number.
    """
    _check(message_id)
    return MessageId(
        retry=bool(message_id >> (_OFFSET_BITS + _PARTITION_BITS)),
        partition=(message_id >> _OFFSET_BITS) & MAX_PARTITION,
        offset=message_id & MAX_OFFSET,
    )


def _check(message_id: int) -> None:
    if not 0 <= message_id <= _MAX_ID:
        raise MessageError(f"message id {message_id}; allowed: 0 to 2^63 - 1")


def offset_of(message_id: int) -> int:
    """The offset that a message id names.

    Raises:
        MessageError: As in `unpack`.
    """
    _check(message_id)
    return message_id & MAX_OFFSET


def address_prefix(host: str, port: int) -> str:
    """The part of an offsetMsgId that names the broker: hex of address and port.

    Args:
        host: An IPv4 or IPv6 address, not a name.
        port: 0 to 65535.
    """
    packed = ipaddress.ip_address(host).packed
    return (packed + port.to_bytes(4, "big")).hex().upper()


def format_offset_msg_id(host: str, port: int, message_id: int) -> str:
    """The offsetMsgId of a message on a broker."""
    return f"{address_prefix(host, port)}{message_id:016X}"


def parse_offset_msg_id(text: str) -> OffsetMsgId:
    """Take an offsetMsgId apart.

    Raises:
        MessageError: It is not 32 or 56 hexadecimal digits, or the port is none.
    """
    if len(text) not in _DIGITS:
        raise MessageError(f"offsetMsgId of {len(text)} digits; allowed: 32 or 56")
    try:
        data = bytes.fromhex(text)
    except ValueError as error:
        raise MessageError(f"offsetMsgId {text!r:.80} is not hexadecimal") from error
    host = data[:-_PORT_AND_ID_BYTES]
    port = int.from_bytes(data[len(host) : len(host) + 4], "big")
    if 2 * len(data) != len(text) or port > _PORT_MAX:
        raise MessageError(f"offsetMsgId {text!r:.80} names no address and port")
    return OffsetMsgId(
        host=str(ipaddress.ip_address(host)),
        port=port,
        message_id=int.from_bytes(data[-8:], "big"),
    )
