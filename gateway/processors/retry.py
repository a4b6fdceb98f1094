"""Messages that a consumer could not handle: again later, or to the dead letters.

Source: AbstractSendMessageProcessor.consumerSendMsgBack and
SendMessageProcessor.handleRetryAndDLQ, RocketMQ 5.3.4.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ropeway.gateway.node import names, record_builder
from ropeway.gateway.processors import auto_create, lookup
from ropeway.gateway.processors.context import Answer, Context, Refusal
from ropeway.gateway.processors.errors import code_of
from ropeway.gateway.processors.needs import SUB, on_group
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import message, message_id, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack, SendMessage
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.routing.api import Group

_FIRST_RETRY_LEVEL = 3
"""The delay level of the first retry: 10 s by default; each next one is higher."""

_NO_LEVEL = 0


@handles(ConsumerSendMsgBack, on_group(SUB, field="group"))
async def send_back(request: ConsumerSendMsgBack, context: Context) -> Answer:
    """Store a consumed message again for its group, after a delay or as dead."""
    group = await _group(context, request.group)
    if group.retry_queue_nums <= 0:
        return Answer()
    original = message.decode(
        await lookup.permitted(
            context, request.offset, request.origin_topic, (SUB,), group=request.group
        )
    )
    pairs = _properties(original)
    level = request.delay_level
    limit = _limit(request.max_reconsume_times, group)
    if original.reconsume_times >= limit or level < _NO_LEVEL:
        pairs[properties.DELAY] = str(_NO_LEVEL)
        target, queue_id = await _dead_letters(context, request.group), 0
    else:
        level = level or _FIRST_RETRY_LEVEL + original.reconsume_times
        pairs[properties.DELAY] = str(level)
        target, queue_id = await _retry_queue(context, group, pairs)
    await _store(target, queue_id, original, pairs)
    return Answer()


def _properties(original: message.Message) -> dict[str, str]:
    """A message's properties, with where it comes from: once known, that stays."""
    pairs = properties.parse(original.properties)
    origin = names.origin_of(original.topic, pairs.get(properties.RETRY_TOPIC))
    pairs[properties.RETRY_TOPIC] = origin
    if not pairs.get(properties.ORIGIN_MESSAGE_ID):
        pairs[properties.ORIGIN_MESSAGE_ID] = message_id.format_offset_msg_id(
            *original.store_host, original.message_id
        )
    pairs[properties.WAIT] = "false"
    return pairs


def _limit(asked: int | None, group: Group) -> int:
    """How often a message may come again: as the client says, or as its group does."""
    return group.retry_max_times if asked is None else asked


async def _retry_queue(
    context: Context, group: Group, pairs: dict[str, str]
) -> tuple[ServedTopic, int]:
    """Where a message waits to come again; its properties get what leads it out."""
    node = context.node
    queues = group.retry_queue_nums
    topic = await node.topics.ensure_derived(names.retry_topic(group.name), queues)
    if not topic.writable:
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            f"the topic[{topic.name}] sending message is forbidden",
        )
    queue_id = random.randrange(queues)  # noqa: S311 - a spread
    target, queue_id, _ = node.schedule.divert(topic, queue_id, pairs, "")
    return target, queue_id


async def _store(
    topic: ServedTopic, queue_id: int, original: message.Message, pairs: dict[str, str]
) -> None:
    """Store a message once more, and wait until that is done."""
    times = original.reconsume_times + 1
    stored = record_builder.store_again(topic, queue_id, original, pairs, times)
    try:
        await stored
    except LogError as error:
        code = code_of(error) or ResponseCode.SYSTEM_ERROR
        raise Refusal(code, str(error)) from error


async def dead_letters_if_exhausted(
    request: SendMessage, context: Context
) -> ServedTopic | None:
    """The dead-letter topic for a retry that has no try left; else None."""
    name = request.topic.removeprefix(names.RETRY_PREFIX)
    group = await _group(context, name)
    limit = _limit(request.max_reconsume_times, group)
    # A group that consumes in order has tried in place already.
    if (request.reconsume_times or 0) > limit or context.node.locks.is_ordered(name):
        return await _dead_letters(context, name)
    return None


async def _group(context: Context, name: str) -> Group:
    remark = f"subscription group not exist, {name:.200}"
    return await auto_create.ensure_group(context, name, remark)


async def _dead_letters(context: Context, group: str) -> ServedTopic:
    return await context.node.topics.ensure_derived(names.dlq_topic(group), 1)
