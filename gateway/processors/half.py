"""Half messages on their way in: stored where nobody sees them.

Source: TransactionalMessageBridge.parseHalfMessageInner, RocketMQ 5.3.4.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gateway.node import names
from gateway.node.node import now_ms
from gateway.node.transactions import half as half_messages
from gateway.node.transactions import records
from gateway.node.transactions.half import Half
from gateway.processors.context import LATER, Context, Later, Refusal
from gateway.processors.stored import stored
from gateway.wire import message, properties
from gateway.wire.codes import ResponseCode
from gateway.wire.plain import plain_record

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from gateway.node.served_topic import ServedTopic
    from storage.api import LogError, RecordParts

PREPARED = 0x4
_VALUE_END = properties.VALUE_END
_MARK = properties.dump({properties.TRANSACTION_PREPARED: "true"})
_GROUP = properties.PRODUCER_GROUP + properties.NAME_END
_UNIQUE_KEY = properties.UNIQ_KEY + properties.NAME_END
_MOST_PLAIN = 2048
"""Characters: longer properties may be too long, which the long way finds out."""
_NOT_PLAIN = (*records.OURS, properties.CHECK_IMMUNITY_TIME)


def is_half(sys_flag: int) -> bool:
    """Whether a message is the half of a transaction.

    Raises:
        Refusal: It says that it is the other half, which only a broker makes.
    """
    state = sys_flag & message.TRANSACTION_MASK
    if state not in (0, PREPARED):
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"sysFlag {sys_flag} says that a transaction has ended; allowed: a half "
            f"message, {PREPARED}, or none",
        )
    return state == PREPARED


def store_plain_half(
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    asked_queue_id: int,
    sys_flag: int,
    born_ms: int,
    flag: int,
    reconsume_times: int,
    text: str,
) -> bool:
    """Store a half message if it is as clients make them, and answer."""
    half_topic = context.node.topics.get(names.HALF_TOPIC)
    if len(text) > _MOST_PLAIN:
        return False
    if text and text[-1] != _VALUE_END:
        text += _VALUE_END
    before, mark, after = text.partition(_MARK)
    if (
        half_topic is None
        or not mark
        or (before and before[-1] != _VALUE_END)
        or context.node.drains.is_drained
    ):
        return False
    text = before + after
    group = _value(text, _GROUP)
    unique_key = _value(text, _UNIQUE_KEY)
    if not group or not unique_key:
        return False
    for name in _NOT_PLAIN:
        if name in text:
            return False
    peer = context.peer
    sys_flag &= ~message.TRANSACTION_MASK
    suffix = (
        f"{_MARK}{records.half_suffix(topic.name, queue_id, unique_key)}"
        f"{context.node.property_suffix}"
    )
    offset = half_topic.partitions[0].next_offset
    identity = half_topic.id_bases[0] | offset
    store_ms = now_ms()
    record = plain_record(
        half_topic.magic,
        half_topic.name_field,
        0,
        sys_flag,
        born_ms,
        peer.packed_address,
        store_ms,
        peer.packed_advertised,
        reconsume_times,
        suffix,
        offset,
        identity,
        flag,
        context.body,
        text,
    )
    if record is None or record[2][-1] != unique_key:
        return False
    data = record[0]
    half = Half(
        data,
        (text + suffix).encode(),
        offset,
        store_ms,
        offset,
        topic.name,
        queue_id,
        group,
        unique_key,
    )
    # Nobody finds it by its tag, nor by its keys.
    _append(context, half_topic, half, (data, 0, ()), asked_queue_id)
    return True


def _value(text: str, start: str) -> str | None:
    """What follows the start of a property; None where that is not certain."""
    at = text.find(start)
    if at < 0 or (at and text[at - 1] != _VALUE_END):
        return None
    at += len(start)
    return text[at : text.find(_VALUE_END, at)]


def store_half(
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    sys_flag: int,
    born_ms: int,
    flag: int,
    reconsume_times: int,
    group: str,
    text: str,
) -> Later | Coroutine[None, None, Later]:
    """Store a half message, whatever its properties are, and answer."""
    node = context.node
    if node.drains.is_drained:
        # Producers try another broker. Who has no queue here cannot be asked later.
        raise Refusal(
            ResponseCode.SERVICE_NOT_AVAILABLE,
            f"broker {node.config.broker} is being drained, and begins no transaction; "
            "look at the route again",
        )
    half_topic = node.topics.get(names.HALF_TOPIC)
    if half_topic is None:
        return _make_and_store(
            context,
            topic,
            queue_id,
            sys_flag,
            born_ms,
            flag,
            reconsume_times,
            group,
            text,
        )
    if text and not text.endswith(properties.VALUE_END):
        text += properties.VALUE_END
    pairs = properties.parse(text)
    unique_key = pairs.get(properties.UNIQ_KEY)
    if not unique_key:
        unique_key = pairs[properties.UNIQ_KEY] = node.unique_keys.make()
        text = properties.dump(pairs)
    text = records.half_text(text, pairs, topic.name, queue_id, group, unique_key)
    peer = context.peer
    offset = half_topic.partitions[0].next_offset
    record = records.half_record(
        half_topic,
        offset,
        now_ms(),
        body=context.body,
        text=text + node.property_suffix,
        flag=flag,
        sys_flag=sys_flag & ~message.TRANSACTION_MASK,
        born_ms=born_ms,
        born_host=peer.packed_address,
        store_host=peer.packed_advertised,
        reconsume_times=reconsume_times,
    )
    _append(context, half_topic, half_messages.read(record.data), record, queue_id)
    return LATER


async def _make_and_store(
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    sys_flag: int,
    born_ms: int,
    flag: int,
    reconsume_times: int,
    group: str,
    text: str,
) -> Later:
    await context.node.transactions.make_topics()
    result = store_half(
        context,
        topic,
        queue_id,
        sys_flag,
        born_ms,
        flag,
        reconsume_times,
        group,
        text,
    )
    return result if isinstance(result, Later) else await result


def _append(
    context: Context,
    half_topic: ServedTopic,
    half: Half,
    record: RecordParts,
    queue_id: int,
) -> None:
    done = partial(_stored, context, half, half_topic.id_bases[0], queue_id)
    half_topic.partitions[0].append([record], half.store_ms, done)


def _stored(
    context: Context,
    half: Half,
    id_base: int,
    queue_id: int,
    offset: int,
    error: LogError | None,
) -> None:
    if error is None:
        context.node.transactions.opened(half)
    stored(context, queue_id, half.unique_key, id_base, 1, offset, error)
