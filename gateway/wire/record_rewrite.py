"""Stored messages at another place: the same bytes with a new head and a new end.

For messages that wait and are stored again when their time has come. What lies between,
body and hosts among it, is copied as it is, and nothing is taken apart into objects:
such a message is to cost little more than two sends. The layout is in
`gateway.wire.message`.
"""

from __future__ import annotations

import re
import struct
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.wire import message
from ropeway.gateway.wire.compiled import may_be_compiled
from ropeway.gateway.wire.properties import tag_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ropeway.gateway.wire.frame import Buffer

# Size, magic, queue offset, system flag, store time and body length, where both hosts
# are IPv4; the last two are further on where one is not.
_FIXED = struct.Struct(">ii12xq8xi16xq20xi")
_HOSTS_V6 = message.BORN_HOST_V6_FLAG | message.STORE_HOST_V6_FLAG
_SIZE_AND_MAGIC = struct.Struct(">ii")
_QUEUE = struct.Struct(">i")
_PLACE = struct.Struct(">qq")
_TIME = struct.Struct(">q")
_LENGTH = struct.Struct(">H")

_CRC_AT, _QUEUE_AT, _FLAG_AT, _OFFSET_AT, _SYS_FLAG_AT = 8, 12, 16, 20, 36
_STORE_MS_AT = 56
_V6_MORE_BYTES = 12
_PREPARED_BEFORE_BODY = 12

_NOT_WHOLE = "a stored message is not whole"
_LONG_PROPERTIES = "a stored message has properties of more than 32767 bytes"

_INDEXED = re.compile(
    rb"(?:\A|\x02)(TAGS|KEYS|UNIQ_KEY)\x01([^\x02]+)(?=\x02|\Z)"
).findall


class Parts(NamedTuple):
    """Where a stored message is in a buffer, and what a move needs of it."""

    at: int
    end: int
    queue_offset: int
    store_ms: int
    store_ms_at: int
    body_at: int
    topic_at: int
    """Where the body ends, too."""
    properties_at: int


def all_parts(data: Buffer) -> Iterator[Parts]:
    """The parts of stored messages in a row.

    Raises:
        ValueError: One of them is not whole.
    """
    at = 0
    while at < len(data):
        parts = parts_of(data, at)
        yield parts
        at = parts.end


def parts_of(data: Buffer, at: int = 0) -> Parts:
    """The parts of one stored message.

    Raises:
        ValueError: It is not whole.
    """
    left = len(data) - at
    if left < _FIXED.size:
        raise ValueError(_NOT_WHOLE)
    size, magic, offset, sys_flag, store_ms, body_bytes = _FIXED.unpack_from(data, at)
    store_ms_at = at + _STORE_MS_AT
    body_at = at + _FIXED.size
    v6_bytes = 0
    if sys_flag & _HOSTS_V6:
        if sys_flag & message.BORN_HOST_V6_FLAG:
            store_ms_at += _V6_MORE_BYTES
            v6_bytes += _V6_MORE_BYTES
        if sys_flag & message.STORE_HOST_V6_FLAG:
            v6_bytes += _V6_MORE_BYTES
        body_at += v6_bytes
    if not _FIXED.size + v6_bytes <= size <= left:
        raise ValueError(_NOT_WHOLE)
    if v6_bytes:
        (store_ms,) = _TIME.unpack_from(data, store_ms_at)
        (body_bytes,) = _QUEUE.unpack_from(data, body_at - _QUEUE.size)
    end = at + size
    topic_at = body_at + body_bytes
    if body_bytes < 0 or topic_at + _LENGTH.size > end:
        raise ValueError(_NOT_WHOLE)
    if magic == message.MAGIC_V1:
        properties_at = topic_at + 1 + data[topic_at] + _LENGTH.size
    else:
        (topic_bytes,) = _LENGTH.unpack_from(data, topic_at)
        properties_at = topic_at + 2 + topic_bytes + _LENGTH.size
    if properties_at > end:
        raise ValueError(_NOT_WHOLE)
    return Parts(
        at,
        end,
        offset,
        store_ms,
        store_ms_at,
        body_at,
        topic_at,
        properties_at,
    )


@may_be_compiled
def records_in(data: Buffer, /) -> list[tuple[int, int, bytes]]:
    """Stored messages in a row: of each its offset, its store time, and itself."""
    return [
        (parts.queue_offset, parts.store_ms, bytes(data[parts.at : parts.end]))
        for parts in all_parts(data)
    ]


def properties_of(record: bytes) -> bytes:
    """The properties of a stored message, in wire form."""
    parts = parts_of(record)
    return record[parts.properties_at : parts.end]


@may_be_compiled
def moved_all(
    messages: Sequence[tuple[bytes, bytes | None]],
    magic: int,
    topic: bytes,
    queue_id: int,
    queue_offset: int,
    id_base: int,
    store_ms: int,
    from_timer: bool,
    /,
) -> list[tuple[bytes, int, list[str]]] | None:
    """Make the records of stored messages as they are stored again, one behind another.

    Args:
        messages: Each as it was, and the properties that it will have, in wire form;
            None for those that it has.
        magic: By `message.topic_field`.
        topic: Likewise, with its length.
        queue_id: Which queue of the topic.
        queue_offset: The offset that the first one will have.
        id_base: The id of the queue's first message.
        store_ms: Now, in milliseconds since 1970.
        from_timer: Whether those that keep their properties get two more: when they
            were stored to wait, and now. Where there is no room they get none.

    Returns:
        Of each the stored message, the hash of its tag, and its keys with the unique
        one last. None where the properties of one are too long.
    """
    records = []
    for offset, (data, other) in enumerate(messages, queue_offset):
        parts = parts_of(data)
        text = data[parts.properties_at : parts.end] if other is None else other
        if other is None and from_timer:
            text = _with_times(text, parts.store_ms, store_ms)
        if len(text) > message.MAX_PROPERTIES_BYTES:
            return None
        place = (magic, topic, queue_id, offset, id_base | offset, store_ms)
        records.append((moved(data, parts, text, *place), *_indexed(text)))
    return records


def mirrored(
    data: Buffer,
    magic: int,
    topic: bytes,
    queue_id: int,
    id_base: int,
    store_host: bytes,
) -> list[tuple[int, int, tuple[bytes, int, list[str]]]]:
    """Make the records of another cluster's messages as they are stored here.

    All but their place stays: offsets, times, properties, and who made them.

    Args:
        data: Stored messages in a row.
        magic: By `message.topic_field`.
        topic: Likewise, with its length.
        queue_id: Which queue of the topic.
        id_base: The id of the queue's first message.
        store_host: This broker's packed address, where clients ask for messages by
            their ids; the other's stays where that has another length.

    Returns:
        Of each its offset, its store time, and its record as one of `moved_all`.

    Raises:
        ValueError: One of them is not whole, or has too long properties.
    """
    found = []
    # Those of one time that follow each other are made in one call.
    rows = groupby(
        enumerate(records_in(data)),
        key=lambda one: (one[1][1], one[1][0] - one[0]),
    )
    for (store_ms, _), some in rows:
        row = [one for _, one in some]
        messages = [(_stored_at(record, store_host), None) for _, _, record in row]
        (first, _, _), *_ = row
        made = moved_all(
            messages, magic, topic, queue_id, first, id_base, store_ms, False
        )
        if made is None:
            raise ValueError(_LONG_PROPERTIES)
        found += [
            (offset, store_ms, one)
            for (offset, _, _), one in zip(row, made, strict=True)
        ]
    return found


def _stored_at(record: bytes, store_host: bytes) -> bytes:
    """A message as if the other broker had stored it, if that has as long an address.

    It is known to be whole.
    """
    (sys_flag,) = message.SYS_FLAG.unpack_from(record, _SYS_FLAG_AT)
    is_v6 = sys_flag & message.STORE_HOST_V6_FLAG
    if len(store_host) != (message.V6_HOST_BYTES if is_v6 else message.V4_HOST_BYTES):
        return record
    at = _STORE_MS_AT + _TIME.size
    if sys_flag & message.BORN_HOST_V6_FLAG:
        at += _V6_MORE_BYTES
    return record[:at] + store_host + record[at + len(store_host) :]


@may_be_compiled
def committed(
    data: bytes,
    text: bytes,
    magic: int,
    topic: bytes,
    queue_id: int,
    queue_offset: int,
    message_id: int,
    store_ms: int,
    half_id: int,
    /,
) -> tuple[bytes, int, list[str]] | None:
    """Make the record of a half message as consumers get it.

    Args:
        data: The half message.
        text: The properties that it will have, in wire form.
        magic: By `message.topic_field`.
        topic: Likewise, with its length.
        queue_id: Which queue of the topic.
        queue_offset: The offset that it will have.
        message_id: The id that it will have.
        store_ms: Now, in milliseconds since 1970.
        half_id: The id of the half message.

    Returns:
        As one of `moved_all`.
    """
    if len(text) > message.MAX_PROPERTIES_BYTES:
        return None
    parts = parts_of(data)
    place = (magic, topic, queue_id, queue_offset, message_id, store_ms)
    stored = bytearray(moved(data, parts, text, *place))
    (sys_flag,) = message.SYS_FLAG.unpack_from(stored, _SYS_FLAG_AT)
    ended = sys_flag & ~message.TRANSACTION_MASK | message.COMMITTED_FLAG
    message.SYS_FLAG.pack_into(stored, _SYS_FLAG_AT, ended)
    _TIME.pack_into(stored, parts.body_at - _PREPARED_BEFORE_BODY, half_id)
    return bytes(stored), *_indexed(text)


def moved(
    data: bytes,
    parts: Parts,
    text: bytes,
    magic: int,
    topic: bytes,
    queue_id: int,
    queue_offset: int,
    message_id: int,
    store_ms: int,
) -> bytes:
    """Make the record of one stored message as it is stored elsewhere.

    Args:
        data: The message as it was.
        parts: Of it.
        text: The properties it will have, in wire form, at most
            `message.MAX_PROPERTIES_BYTES` of them.
        magic: By `message.topic_field`.
        topic: Likewise, with its length.
        queue_id: Which queue of the topic.
        queue_offset: The offset it will have.
        message_id: The id it will have.
        store_ms: When it is stored, in milliseconds since 1970.
    """
    size = parts.topic_at + len(topic) + _LENGTH.size + len(text)
    return b"".join(
        (
            _SIZE_AND_MAGIC.pack(size, magic),
            data[_CRC_AT:_QUEUE_AT],
            _QUEUE.pack(queue_id),
            data[_FLAG_AT:_OFFSET_AT],
            _PLACE.pack(queue_offset, message_id),
            data[_SYS_FLAG_AT : parts.store_ms_at],
            _TIME.pack(store_ms),
            data[parts.store_ms_at + _TIME.size : parts.topic_at],
            topic,
            _LENGTH.pack(len(text)),
            text,
        )
    )


def _with_times(text: bytes, enqueue_ms: int, dequeue_ms: int) -> bytes:
    # Source: TimerMessageStore.convert, RocketMQ 5.5.0.
    times = b"TIMER_ENQUEUE_MS\x01%d\x02TIMER_DEQUEUE_MS\x01%d\x02"
    longer = times % (enqueue_ms, dequeue_ms) + text
    return longer if len(longer) <= message.MAX_PROPERTIES_BYTES else text


def _indexed(text: bytes) -> tuple[int, list[str]]:
    """The hash of the tag, and the keys."""
    found = dict(_INDEXED(text))
    keys = found[b"KEYS"].decode().split() if b"KEYS" in found else []
    if b"UNIQ_KEY" in found:
        keys.append(found[b"UNIQ_KEY"].decode())
    tag = found.get(b"TAGS")
    return tag_hash(tag.decode()) if tag else 0, keys
