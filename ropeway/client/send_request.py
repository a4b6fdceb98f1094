"""Messages as requests to send them, and the answers to those.

Source: DefaultMQProducerImpl.sendKernelImpl, MessageBatch.java and
MQClientAPIImpl.processSendResponse, RocketMQ 5.3.4.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING

from ropeway.client.message import MessageQueue, SendResult, SendStatus
from ropeway.client.routes import DEFAULT_TOPIC
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import (
    SendBatchMessage,
    SendMessage,
    SendMessageV2,
    SendReply,
)
from ropeway.gateway.wire.message import COMPRESSED_FLAG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ropeway.client.connection import Response
    from ropeway.client.message import Message

RETRY_PREFIX, DLQ_PREFIX = "%RETRY%", "%DLQ%"
MIGRATION_GROUP = "ropeway-migrate"
"""The producer group of what a migration sends for itself."""
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""Where messages with a delay level wait, a queue for each level."""

STATUS_OF_CODE = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}
"""The answers that mean that the message is stored."""

_ZLIB_TYPE = 0x3 << 8
_MAX_TOPIC_LETTERS = 255
_MAX_DELAY_LEVEL = 18


def check(message: Message, max_bytes: int) -> None:
    """Refuse what no broker would take.

    Raises:
        ValueError: Says what is wrong and what is allowed.
    """
    if not 0 < len(message.topic) <= _MAX_TOPIC_LETTERS:
        raise ValueError(
            f"topic of {len(message.topic)} letters; allowed: 1 to {_MAX_TOPIC_LETTERS}"
        )
    # Without a body, a message with keys deletes them from a compacted topic.
    least = 0 if message.keys else 1
    if not least <= len(message.body) <= max_bytes:
        raise ValueError(
            f"body of {len(message.body)} bytes; allowed: {least} to {max_bytes}"
        )
    if not 0 <= message.delay_level <= _MAX_DELAY_LEVEL:
        raise ValueError(
            f"delay_level {message.delay_level}; allowed: 0 to {_MAX_DELAY_LEVEL}"
        )
    if message.delay_ms < 0:
        raise ValueError(f"delay_ms {message.delay_ms}; allowed: from 0")
    if (
        bool(message.delay_level)
        + bool(message.delay_ms)
        + (message.deliver_ms is not None)
        > 1
    ):
        raise ValueError(
            "message has more than one of delay_level, delay_ms and deliver_ms; "
            "allowed: one"
        )
    for name, value in wire_properties(message, "").items():
        if names.NAME_END in name + value or names.VALUE_END in name + value:
            raise ValueError(
                f"property {name!r} has a character 0x01 or 0x02; allowed: all others"
            )


def check_batch(messages: Sequence[Message], max_bytes: int) -> None:
    """Refuse messages that cannot go in one request.

    Raises:
        ValueError: Says what is wrong and what is allowed.
    """
    if not messages:
        raise ValueError("batch of 0 messages; allowed: 1 or more")
    topic = messages[0].topic
    for message in messages:
        check(message, max_bytes)
        if message.topic != topic:
            raise ValueError(
                f"batch has topics {topic!r} and {message.topic!r}; allowed: one"
            )
        if _is_delayed(message):
            raise ValueError("batch has a message with a delay; allowed: none")
    total = sum(len(message.body) for message in messages)
    if total > max_bytes:
        raise ValueError(f"batch of {total} bytes; allowed: {max_bytes}")


def _is_delayed(message: Message) -> bool:
    return bool(
        message.delay_level or message.delay_ms or message.deliver_ms is not None
    )


def wire_properties(message: Message, unique_key: str) -> dict[str, str]:
    """All properties that a message goes out with."""
    properties = {**message.properties, names.WAIT: "true"}
    if message.tags:
        properties[names.TAGS] = message.tags
    if message.keys:
        properties[names.KEYS] = " ".join(message.keys)
    if message.sharding_key is not None:
        properties[names.SHARDING_KEY] = message.sharding_key
    if message.delay_level:
        properties[names.DELAY] = str(message.delay_level)
    if message.delay_ms:
        properties[names.TIMER_DELAY_MS] = str(message.delay_ms)
    if message.deliver_ms is not None:
        properties[names.TIMER_DELIVER_MS] = str(message.deliver_ms)
    properties.setdefault(names.UNIQ_KEY, unique_key)
    return properties


def compressed(body: bytes, above_bytes: int) -> tuple[bytes, int]:
    """A body as it goes out, with the system flags that say how."""
    if not above_bytes or len(body) <= above_bytes:
        return body, 0
    return zlib.compress(body), COMPRESSED_FLAG | _ZLIB_TYPE


def single_request(
    group: str,
    queue: MessageQueue,
    properties: Mapping[str, str],
    *,
    sys_flag: int = 0,
    flag: int = 0,
    default_queues: int = 4,
) -> SendMessage:
    """The request to store one message.

    In a retry topic the broker wants to know how often the message was handled in
    the header and not in the properties.
    """
    rest = dict(properties)
    times = maximum = None
    if queue.topic.startswith(RETRY_PREFIX):
        times = rest.pop(names.RECONSUME_TIME, None)
        maximum = rest.pop(names.MAX_RECONSUME_TIMES, None)
    return SendMessageV2(
        producer_group=group,
        topic=queue.topic,
        default_topic=DEFAULT_TOPIC,
        default_topic_queue_nums=default_queues,
        queue_id=queue.queue_id,
        sys_flag=sys_flag,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=flag,
        properties=names.dump(rest),
        reconsume_times=int(times or 0),
        max_reconsume_times=None if maximum is None else int(maximum),
        bname=queue.broker_name,
    )


def batch_request(
    group: str,
    queue: MessageQueue,
    messages: Sequence[Message],
    properties: Sequence[Mapping[str, str]],
    *,
    default_queues: int = 4,
) -> tuple[SendMessage, bytes]:
    """The request to store several messages, and its body.

    Raises:
        MessageError: A message's properties are too long.
    """
    entries = [
        BatchEntry(message.flag, message.body, names.dump(own))
        for message, own in zip(messages, properties, strict=True)
    ]
    header = encoded_request(group, queue, default_queues=default_queues)
    return header, encode_batch(entries)


def encoded_request(
    group: str, queue: MessageQueue, *, default_queues: int = 4
) -> SendMessage:
    """The request to store a batch that is in wire form.

    Args:
        group: The producer group.
        queue: Where to.
        default_queues: How many queues a topic gets that this creates.
    """
    return _wire_request(
        SendBatchMessage,
        group,
        queue,
        0,
        names.dump({names.WAIT: "true"}),
        default_queues,
    )


def entry_request(
    group: str, queue: MessageQueue, entry: BatchEntry, *, default_queues: int = 4
) -> SendMessage:
    """The request to store one message in wire form; see `encoded_request`."""
    return _wire_request(
        SendMessageV2, group, queue, entry.flag, entry.properties, default_queues
    )


def _wire_request(
    kind: type[SendMessage],
    group: str,
    queue: MessageQueue,
    flag: int,
    properties: str,
    default_queues: int,
) -> SendMessage:
    return kind(
        producer_group=group,
        topic=queue.topic,
        default_topic=DEFAULT_TOPIC,
        default_topic_queue_nums=default_queues,
        queue_id=queue.queue_id,
        sys_flag=0,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=flag,
        properties=properties,
        reconsume_times=0,
        batch=kind is SendBatchMessage,
        bname=queue.broker_name,
    )


def results(
    response: Response, queue: MessageQueue, unique_keys: Sequence[str]
) -> list[SendResult]:
    """Where the messages of one request went, in their order.

    Raises:
        BadResponseError: The answer lacks what it must have.
    """
    reply = response.header(SendReply)
    # A broker that keeps a batch as one entry answers with a single id.
    ids = reply.msg_id.split(",")
    stored_in = MessageQueue(queue.topic, queue.broker_name, reply.queue_id)
    status = STATUS_OF_CODE[ResponseCode(response.code)]
    return [
        SendResult(
            msg_id=key,
            offset_msg_id=ids[min(index, len(ids) - 1)],
            queue=stored_in,
            queue_offset=reply.queue_offset + index,
            status=status,
            recall_handle=reply.recall_handle,
        )
        for index, key in enumerate(unique_keys)
    ]
