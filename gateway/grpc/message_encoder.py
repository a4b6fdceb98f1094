"""Stored messages as consumers get them.

Source: GrpcConverter.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from ropeway.gateway.grpc.message_decoder import NAMESPACE_END
from ropeway.gateway.grpc.protocol import (
    DeadLetterQueue,
    Digest,
    DigestType,
    Encoding,
    Message,
    MessageType,
    Resource,
    SystemProperties,
    Timestamp,
)
from ropeway.gateway.grpc.reserved import RESERVED, TRACE_CONTEXT
from ropeway.gateway.node import message_types, names
from ropeway.gateway.wire import host_port, message, properties

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRIORITY_DIGITS = 9
"""More of them are in nobody's priority, and would not fit the protocol's field."""
_TYPES = {
    message_types.FIFO: MessageType.FIFO,
    message_types.DELAY: MessageType.DELAY,
    message_types.TRANSACTION: MessageType.TRANSACTION,
    message_types.PRIORITY: MessageType.PRIORITY,
    message_types.LITE: MessageType.LITE,
}


def resource(name: str) -> Resource:
    """A name of remoting clients, taken apart."""
    namespace, end, rest = name.partition(NAMESPACE_END)
    if not end or not namespace:
        return Resource(name=name)
    return Resource(resource_namespace=namespace, name=rest)


def message_of(
    stored: message.Message, topic: str | None = None, attempts: int | None = None
) -> Message:
    """A stored message as the gRPC protocol has it.

    Args:
        stored: Taken apart.
        topic: The one asked for, where the message may be in another one: to be
            tried again.
        attempts: Which delivery this is, from 1, where the message does not say.
    """
    pairs = properties.parse(stored.properties)
    origin = names.origin_of(stored.topic, pairs.get(properties.RETRY_TOPIC))
    return Message(
        topic=resource(topic or origin),
        user_properties={
            name: value for name, value in pairs.items() if name not in RESERVED
        },
        system_properties=_system(stored, pairs, attempts),
        body=stored.body,
    )


def _system(
    stored: message.Message, pairs: Mapping[str, str], attempts: int | None
) -> SystemProperties:
    is_gzip = bool(stored.sys_flag & message.COMPRESSED_FLAG)
    system = SystemProperties(
        keys=pairs.get(properties.KEYS, "").split(),
        message_id=pairs.get(properties.UNIQ_KEY, ""),
        body_digest=_digest(stored.body),
        body_encoding=Encoding.GZIP if is_gzip else Encoding.IDENTITY,
        message_type=_TYPES.get(message_types.type_of(pairs), MessageType.NORMAL),
        born_timestamp=timestamp(stored.born_ms),
        born_host=pairs.get(properties.BORN_HOST) or stored.born_host[0],
        store_timestamp=timestamp(stored.store_ms),
        store_host=host_port.join(*stored.store_host),
        queue_id=stored.queue_id,
        queue_offset=stored.queue_offset,
        delivery_attempt=attempts or stored.reconsume_times + 1,
        # None leaves these out.
        tag=pairs.get(properties.TAGS),
        message_group=pairs.get(properties.SHARDING_KEY),
        trace_context=pairs.get(TRACE_CONTEXT),
        lite_topic=pairs.get(properties.LITE_TOPIC),
    )
    priority = pairs.get(properties.PRIORITY, "")
    if priority.isdecimal() and len(priority) <= _PRIORITY_DIGITS:
        system.priority = int(priority)
    due = pairs.get(properties.TIMER_DELIVER_MS) or pairs.get(properties.TIMER_OUT_MS)
    if due is not None and due.isdecimal():
        system.delivery_timestamp.CopyFrom(timestamp(int(due)))
    origin = pairs.get(properties.DLQ_ORIGIN_TOPIC)
    if origin is not None:
        system.dead_letter_queue.CopyFrom(
            DeadLetterQueue(
                topic=origin,
                message_id=pairs.get(properties.DLQ_ORIGIN_MESSAGE_ID, ""),
            )
        )
    return system


def _digest(body: bytes) -> Digest:
    checksum = hashlib.md5(body, usedforsecurity=False).hexdigest().upper()
    return Digest(type=DigestType.MD5, checksum=checksum)


def timestamp(time_ms: int) -> Timestamp:
    """A time in milliseconds since 1970."""
    return Timestamp(seconds=time_ms // 1000, nanos=time_ms % 1000 * 1_000_000)
