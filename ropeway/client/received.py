"""Stored messages as their readers see them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.client.decompression import MAX_BODY_BYTES, inflate
from ropeway.client.errors import BadResponseError
from ropeway.client.message import MessageQueue, ReceivedMessage
from ropeway.client.send_request import RETRY_PREFIX
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.message_id import format_offset_msg_id

if TYPE_CHECKING:
    from ropeway.gateway.wire.frame import Buffer

_COMPRESSIONS = {0: "zlib", 1: "lz4", 2: "zstd", 3: "zlib"}
"""Source: CompressionType.findByValue, RocketMQ 5.3.4; 0 is from before 5.0."""


def read_all(data: Buffer, broker_name: str) -> list[ReceivedMessage]:
    """Read a pull's body.

    Args:
        data: Stored messages one behind the other.
        broker_name: The broker that gave them.

    Raises:
        BadResponseError: The bytes are not stored messages.
    """
    return [read_one(one, broker_name) for one in _decoded(data, broker_name)]


async def read_answer(
    data: Buffer, broker_name: str, most_bytes: int | None = None
) -> list[ReceivedMessage]:
    """As `read_all`, where what is compressed is undone on a thread.

    Args:
        data: Likewise.
        broker_name: Likewise.
        most_bytes: How long all bodies may become together; those beyond it stay
            compressed. None: each alone is bounded.

    Raises:
        BadResponseError: Likewise.
    """
    messages = _decoded(data, broker_name)
    if not any(one.sys_flag & stored.COMPRESSED_FLAG for one in messages):
        return [read_one(one, broker_name) for one in messages]

    def read() -> list[ReceivedMessage]:
        left = MAX_BODY_BYTES * len(messages) if most_bytes is None else most_bytes
        found = []
        for one in messages:
            found.append(read_one(one, broker_name, min(left, MAX_BODY_BYTES)))
            if found[-1].compression is None:
                left -= len(found[-1].body)
        return found

    return await asyncio.to_thread(read)


def _decoded(data: Buffer, broker_name: str) -> list[stored.Message]:
    try:
        return [stored.decode(part) for part in stored.split(data)]
    except MessageError as error:
        raise BadResponseError(f"broker {broker_name!r} sent {error}") from error


def read_one(
    message: stored.Message, broker_name: str, most_bytes: int = MAX_BODY_BYTES
) -> ReceivedMessage:
    """Give a stored message the shape that handlers get.

    Args:
        message: The message.
        broker_name: The broker that gave it.
        most_bytes: A body that becomes longer stays compressed.
    """
    properties = names.parse(message.properties)
    offset_msg_id = format_offset_msg_id(*message.store_host, message.message_id)
    body, compression = _decompressed(message, most_bytes)
    topic = message.topic
    if topic.startswith(RETRY_PREFIX):
        topic = properties.get(names.RETRY_TOPIC, topic)
    return ReceivedMessage(
        topic=topic,
        body=body,
        queue=MessageQueue(message.topic, broker_name, message.queue_id),
        queue_offset=message.queue_offset,
        msg_id=properties.get(names.UNIQ_KEY) or offset_msg_id,
        offset_msg_id=offset_msg_id,
        message_id=message.message_id,
        tags=properties.get(names.TAGS),
        keys=tuple(properties.get(names.KEYS, "").split()),
        properties=properties,
        reconsume_times=message.reconsume_times,
        flag=message.flag,
        sys_flag=message.sys_flag,
        born_ms=message.born_ms,
        born_host=message.born_host,
        store_ms=message.store_ms,
        store_host=message.store_host,
        compression=compression,
    )


def _decompressed(message: stored.Message, most_bytes: int) -> tuple[bytes, str | None]:
    if not message.sys_flag & stored.COMPRESSED_FLAG:
        return message.body, None
    number = (message.sys_flag & stored.COMPRESSION_TYPE_MASK) >> 8
    name = _COMPRESSIONS.get(number, f"type {number}")
    if name != "zlib":
        return message.body, name
    inflated = inflate(message.body, most_bytes) if most_bytes > 0 else None
    if inflated is None:
        # A handler that sees `compression` can tell; an error here would block
        # the queue behind one bad message.
        return message.body, name
    return inflated, None
