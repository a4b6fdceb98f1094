"""Producing: single messages and batches, one-way or answered.

What is checked and chosen before a message is stored is here, in order; `send_store`
makes its record, appends it, and answers.
"""

from __future__ import annotations

from functools import partial
from random import randrange
from typing import TYPE_CHECKING

from ropeway.common.eager import settled
from ropeway.gateway.node import message_keys, message_types, names
from ropeway.gateway.processors import auto_create, retry
from ropeway.gateway.processors.context import (
    LATER,
    Answer,
    Context,
    Later,
    NotPreparedError,
    Refusal,
)
from ropeway.gateway.processors.half_message import check_half, store_half
from ropeway.gateway.processors.needs import PUB, SUB, Needs, topic_need, topic_needs
from ropeway.gateway.processors.pass_on import pass_on
from ropeway.gateway.processors.queue_choice import queue_of
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.processors.send_batch import no_batch, send_batch
from ropeway.gateway.processors.send_store import store
from ropeway.gateway.processors.throttling import charge_send, has_to_wait, wait_to_send
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import (
    SendBatchMessage,
    SendMessage,
    SendMessageV2,
)
from ropeway.gateway.wire.message import TRANSACTION_MASK
from ropeway.gateway.wire.properties import TRANSACTION_PREPARED
from ropeway.routing.api import AT_SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.acl.api import Need
    from ropeway.common.eager import Eventual
    from ropeway.gateway.node.served_topic import ServedTopic

_PUB = (PUB,)


def _needs(request: SendMessage, context: Context) -> Iterator[Need]:
    if request.topic.startswith(names.RETRY_PREFIX):
        return _retry_needs(request, context)
    return iter((topic_need(request.topic, _PUB),))


def _retry_needs(request: SendMessage, context: Context) -> Iterator[Need]:
    """What consumers need that send back to their groups' retry topics."""
    yield from topic_needs(context.node, request.topic, (SUB,))
    # The group will take the message for one of that topic.
    pairs = properties.parse(request.properties)
    if origin := pairs.get(properties.RETRY_TOPIC):
        yield from topic_needs(context.node, origin, (SUB,))


@handles(SendMessage, Needs(_needs))
@handles(SendMessageV2, Needs(_needs))
@handles(SendBatchMessage, Needs(_needs))
def send_message(request: SendMessage, context: Context) -> Eventual[Later | Answer]:
    """Store a message or a batch, in a topic that is made where it is missing."""
    topic = context.node.topics.get(request.topic)
    if topic is None or topic.passed_on:
        return _elsewhere(request, context, topic)
    if context.node.quotas.sends:
        if has_to_wait(context, topic.name):
            return _wait_and_send(request, context)
        charge_send(context, topic.name)
    limit = context.node.config.limits.message_bytes
    is_usual = 0 < len(context.body) <= limit and not request.reconsume_times
    if not (is_usual and topic.plain):
        _check(request, context, topic)
    queue_id = request.queue_id
    if queue_id < 0:
        queue_id = randrange(topic.setup.write_queue_nums or 1)  # noqa: S311 - a spread
    if not topic.plain or queue_id >= len(topic.partitions):
        queue_id = queue_of(request, context, topic, queue_id)
    if request.sys_flag & TRANSACTION_MASK or (
        TRANSACTION_PREPARED in request.properties and _says_half(request)
    ):
        check_half(request.sys_flag)
        return _send_half(request, context, topic, queue_id)
    if request.batch:
        send_batch(request, context, topic, queue_id)
        return LATER
    if not topic.plain and topic.name.startswith(names.RETRY_PREFIX):
        return _send_to_retry(request, context, topic, queue_id)
    store(request, context, topic, queue_id)
    return LATER


def _check(request: SendMessage, context: Context, topic: ServedTopic) -> None:
    """Refuse what a topic does not take, and what is no message."""
    if not topic.plain:
        _check_topic(request, topic)
    limit = context.node.config.limits.message_bytes
    # Without a body, a message deletes its key.
    least = 0 if topic.compacted and not request.batch else 1
    if not least <= len(context.body) <= limit:
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"message body of {len(context.body)} bytes; allowed: {least} to {limit}",
        )
    if (request.reconsume_times or 0) < 0:
        # Its consumers would try it again for ever.
        raise Refusal(
            ResponseCode.MESSAGE_ILLEGAL,
            f"reconsumeTimes is {request.reconsume_times}; allowed: 0 and more",
        )


def _elsewhere(
    request: SendMessage, context: Context, topic: ServedTopic | None
) -> Eventual[Later | Answer]:
    """Send to a topic that is not there, or that a migration's source stores."""
    has_source = context.node.source is not None
    if topic is None and not (has_source and names.is_of_users(request.topic)):
        raise _missing(request, context)
    if topic is not None and topic.setup.writes == AT_SOURCE and not has_source:
        # A mirror that is no migration.
        raise _forbidden(request)
    return pass_on(request, context)


def _missing(request: SendMessage, context: Context) -> Exception:
    """What becomes of a send whose topic is not there."""
    if complaint := names.topic_complaint(request.topic):
        return Refusal(ResponseCode.INVALID_PARAMETER, complaint)
    if request.topic in names.NOT_FOR_SENDING:
        return _forbidden(request)
    return NotPreparedError(request.topic, partial(_create, request, context))


async def _wait_and_send(request: SendMessage, context: Context) -> Later | Answer:
    """Send what nobody can be held back for, when the topic's quota lets it."""
    await wait_to_send(context, request.topic)
    if context.node.topics.get(request.topic) is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{request.topic}] was deleted while the send waited",
        )
    charge_send(context, request.topic)
    return await settled(send_message(request, context))


def _check_topic(request: SendMessage, topic: ServedTopic) -> None:
    """Refuse what a topic does not take."""
    if not topic.writable or topic.name in names.NOT_FOR_SENDING:
        raise _forbidden(request)
    if topic.message_type != message_types.MIXED:
        message_types.check(topic.message_type, properties.parse(request.properties))
    if topic.compacted and not request.batch:
        message_keys.check(properties.parse(request.properties))


def _says_half(request: SendMessage) -> bool:
    """Whether the properties say what clients also say by a flag."""
    pairs = properties.parse(request.properties)
    if pairs.get(TRANSACTION_PREPARED, "").lower() != "true":
        return False
    # Clients before 4.6.1 left it with messages that they sent again.
    return not (request.reconsume_times and pairs.get(properties.DELAY, "0") != "0")


def _send_half(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> Eventual[Later]:
    if request.batch:
        raise no_batch("transaction")
    return store_half(request, context, topic, queue_id)


async def _create(request: SendMessage, context: Context) -> None:
    """Make the topic of a send, unless somebody has done so.

    Raises:
        Refusal: It is not there, and is not to be made.
    """
    name = request.topic
    if context.node.topics.get(name) is not None:
        return
    topic = await auto_create.auto_create(
        context, name, request.default_topic, request.default_topic_queue_nums
    )
    if topic is None and name.startswith(names.RETRY_PREFIX):
        with auto_create.topic(context, name):
            topic = await context.node.topics.ensure_derived(name, 1)
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{name}] not exist, apply first please!",
        )


def _forbidden(request: SendMessage) -> Refusal:
    remark = f"the topic[{request.topic}] sending message is forbidden"
    if request.topic in names.NOT_FOR_SENDING:
        remark = f"Sending message to topic[{request.topic}] is forbidden."
    return Refusal(ResponseCode.NO_PERMISSION, remark)


async def _send_to_retry(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> Later:
    """A consumer that could not send a message back sends it as a new one."""
    target = await retry.dead_letters_if_exhausted(request, context)
    if target is None:
        store(request, context, topic, queue_id)
    else:
        store(request, context, target, 0, delayed=False)
    return LATER
