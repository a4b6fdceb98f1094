"""Half messages on their way in: stored where nobody sees them.

Source: TransactionalMessageBridge.parseHalfMessageInner, RocketMQ 5.3.4.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.common.eager import settled
from ropeway.gateway.node import names
from ropeway.gateway.node.transactions import half_message as half_messages
from ropeway.gateway.node.transactions import records
from ropeway.gateway.processors.context import LATER, Context, Later, Refusal
from ropeway.gateway.processors.send_store import new_message, stored
from ropeway.gateway.wire import message, properties
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from ropeway.common.eager import Eventual
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.transactions.half_message import Half
    from ropeway.gateway.wire.commands.send import SendMessage
    from ropeway.storage.api import LogError

PREPARED = 0x4
_LONGEST_S = 72 * 3600
"""A producer that wants to be asked later than that is refused: the message would be
stored again every check interval until then. Source: `needSkip` of
TransactionalMessageServiceImpl.java, RocketMQ 5.3.4: fileReservedTime."""


def check_half(sys_flag: int) -> None:
    """Refuse what says that it is the other half, which only a broker makes.

    Raises:
        Refusal: It does.
    """
    if sys_flag & message.TRANSACTION_MASK not in (0, PREPARED):
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"sysFlag {sys_flag} says that a transaction has ended; allowed: a half "
            f"message, {PREPARED}, or none",
        )


def store_half(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> Eventual[Later]:
    """Store a half message, and answer."""
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
        return _make_and_store(request, context, topic, queue_id)
    text, pairs = properties.ended(request.properties)
    # A time that cannot be used is refused now, not when it is committed.
    store_ms = now_ms()
    node.delays.asked_ms(pairs, store_ms)
    unique_key = pairs.get(properties.UNIQ_KEY)
    if not unique_key:
        unique_key = pairs[properties.UNIQ_KEY] = node.unique_keys.make()
        text = properties.dump(pairs)
    text = records.half_text(
        *(text, pairs, topic.name, queue_id, request.producer_group, unique_key)
    )
    text += node.property_suffix
    partition = half_topic.partitions[0]
    offset = partition.next_offset
    record = records.half_record(
        half_topic,
        offset,
        store_ms,
        new_message(request, context, text),
    )
    half = half_messages.of_pairs(pairs, record.data, text.encode(), offset, store_ms)
    if half.immunity_ms is not None:
        _check_immunity(request.born_timestamp + half.immunity_ms - store_ms)
    done = partial(_stored, context, half, half_topic.id_bases[0], queue_id)
    partition.append([record], store_ms, done)
    return LATER


def _check_immunity(wait_ms: int) -> None:
    """Refuse a message whose producer is not to be asked about it for too long.

    Raises:
        Refusal: It is such a one.
    """
    if wait_ms > _LONGEST_S * 1000:
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"{properties.CHECK_IMMUNITY_TIME} and the time of birth say that the "
            f"producer is asked in {wait_ms / 1000:.0f} s at the earliest; allowed: "
            f"{_LONGEST_S}",
        )


async def _make_and_store(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> Later:
    await context.node.transactions.make_topics()
    return await settled(store_half(request, context, topic, queue_id))


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
    stored(context, queue_id, half.unique_key, id_base, 1, b"", offset, error)
