"""Messages that are to be delivered later, and those that are taken back before.

Source: SendMessageProcessor.attachRecallHandle and RecallMessageProcessor, 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.common.clock import now_ms
from ropeway.gateway.node import names, record_builder
from ropeway.gateway.node.timer import pending_timers
from ropeway.gateway.processors import lookup
from ropeway.gateway.processors.context import LATER, Answer, Context, Later, Refusal
from ropeway.gateway.processors.errors import code_of
from ropeway.gateway.processors.needs import GET, PUB, on_topic
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import bodies, properties, recall
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import RecallMessage, RecallReply
from ropeway.gateway.wire.commands.timers import (
    MAX_PAGE,
    ListTimers,
    TimerPage,
    WaitingMessage,
)
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.storage.api import LogError

_RECALL_BODY = b"0"
_MAX_LOOKS = 10_000
"""Messages of any topic that are looked at for one page: 10 ms of a thread."""


def recall_handle(
    node: Node, topic: ServedTopic, unique_key: str, due_ms: int
) -> bytes:
    """The handle to recall a message by; none for one that is sent back."""
    if topic.name.startswith(names.RETRY_PREFIX):
        return b""
    return recall.dump(
        recall.RecallHandle(topic.name, node.config.broker, due_ms, unique_key)
    )


@handles(RecallMessage, on_topic(PUB))
def recall_message(request: RecallMessage, context: Context) -> Later:
    """Take back a message before its time: it is not delivered any more.

    As with RocketMQ's brokers, nobody looks whether it is still there: of a message
    that was recalled before, the answer is the same.
    """
    node = context.node
    lookup.find_topic(node, request.topic)
    handle = _checked(request, context)
    store_ms = now_ms()
    topic = node.timer.topic
    partition = topic.partitions[0]
    text = pending_timers.recall_text(
        handle.deliver_ms, handle.topic, handle.unique_key
    )
    record = record_builder.make_record(
        topic,
        0,
        partition.next_offset,
        store_ms,
        record_builder.NewMessage(
            body=_RECALL_BODY,
            properties=text,
            born_ms=store_ms,
            born_host=context.peer.packed_address,
            store_host=context.peer.packed_advertised,
        ),
    )

    def done(_offset: int, error: LogError | None) -> None:
        if error is not None:
            context.refuse(code_of(error) or ResponseCode.SYSTEM_ERROR, str(error))
            return
        reply = RecallReply(msg_id=handle.unique_key)
        region = {properties.MSG_REGION: node.config.region}
        context.answer(Answer(header=reply, fields=region))

    partition.append([record], store_ms, done)
    return LATER


@handles(ListTimers, on_topic(GET))
async def list_timers(request: ListTimers, context: Context) -> Answer:
    """Tell which messages wait."""
    if not 1 <= request.max_nums <= MAX_PAGE:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"maxNums is {request.max_nums}; allowed: 1 to {MAX_PAGE}",
        )
    try:
        after = bytes.fromhex(request.after)
    except ValueError as error:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"after is {request.after!r:.80}; allowed: what the page before has said",
        ) from error
    broker = context.node.config.broker
    entries, more = await context.node.timer.page(
        after, request.topic, request.max_nums, _MAX_LOOKS
    )
    messages = []
    for entry in entries:
        topic, _, unique_key = entry.identity.decode().partition("+")
        handle = recall.RecallHandle(topic, broker, entry.due_ms, unique_key)
        messages.append(
            WaitingMessage(
                topic=topic,
                deliver_ms=entry.due_ms,
                msg_id=unique_key,
                recall_handle=recall.dump(handle).decode(),
            )
        )
    page = TimerPage(messages=messages, next=more.hex() if more else None)
    return Answer(body=bodies.encode(page))


def _checked(request: RecallMessage, context: Context) -> recall.RecallHandle:
    try:
        handle = recall.parse(request.recall_handle)
    except MessageError as error:
        raise _illegal(str(error)) from error
    if handle.topic != request.topic:
        raise _illegal(
            "recall failed, topic not match: "
            f"the handle is of topic {handle.topic:.200}"
        )
    broker = context.node.config.broker
    if handle.broker != broker:
        raise _illegal(
            f"recall failed, broker service not available: the handle is of broker "
            f"{handle.broker:.200}, and this is {broker}"
        )
    left_ms = handle.deliver_ms - now_ms()
    if not 0 < left_ms <= context.node.timer.max_delay_ms:
        raise _illegal(
            f"recall failed, timestamp invalid: the message was due {-left_ms}ms ago"
            if left_ms <= 0
            else "recall failed, timestamp invalid: no message can wait for "
            f"{left_ms}ms"
        )
    return handle


def _illegal(remark: str) -> Refusal:
    return Refusal(ResponseCode.ILLEGAL_OPERATION, remark)
