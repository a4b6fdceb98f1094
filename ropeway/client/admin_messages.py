"""Finding messages by id and by time, and sending them again."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client.decompression import MAX_ANSWER_BYTES, MAX_BODY_BYTES
from ropeway.client.errors import AdminError, ResponseError
from ropeway.client.message import Message
from ropeway.client.received import read_answer
from ropeway.client.send_request import DLQ_PREFIX
from ropeway.gateway.wire import host_port
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.bodies import SUB_ALL, TAG
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.callbacks import ConsumeMessageDirectly
from ropeway.gateway.wire.commands.offsets import GetMaxOffset, Offset, SearchOffset
from ropeway.gateway.wire.commands.pull import SUBSCRIPTION_FLAG, PullMessage, PullReply
from ropeway.gateway.wire.commands.query import NoteResend
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.message_id import parse_offset_msg_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from ropeway.client.admin import Admin
    from ropeway.client.message import MessageQueue, ReceivedMessage

READER_GROUP = "ropeway-cli"
"""The group of readers that leave no trace: they never store an offset."""

_PULL_COUNT = 32
_HANDLE_TIMEOUT_S = 30.0
"""Brokers give consumers less time than that."""
_FOUND = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)

_SENDERS = {names.TAGS, names.KEYS, names.WAIT, names.UNIQ_KEY, names.SHARDING_KEY}
SENT_ONCE = frozenset(
    {
        *names.RARE,
        *(names.RETRY_TOPIC, names.REAL_TOPIC, names.REAL_QUEUE_ID, names.CLUSTER),
        *(names.PRODUCER_GROUP, names.TRANSACTION_ID, names.TRANSACTION_CHECK_TIMES),
        *(names.TRANSACTION_PREPARED_QUEUE_OFFSET, names.CHECK_IMMUNITY_TIME),
        *(names.MAX_RECONSUME_TIMES, names.RECONSUME_TIME, names.ORIGIN_MESSAGE_ID),
        *(names.MSG_REGION, names.TRACE_ON, names.BORN_HOST, names.TIMER_OUT_MS),
        *(names.TIMER_ENQUEUE_MS, names.TIMER_DEQUEUE_MS, names.TIMER_ROLL_TIMES),
        *(names.TIMER_DEL_UNIQKEY, names.DLQ_ORIGIN_TOPIC),
        *(names.DLQ_ORIGIN_MESSAGE_ID, names.PUSH_REPLY_TIME, names.TRANSFER_FLAG),
        *("MIN_OFFSET", "MAX_OFFSET", "CONSUME_START_TIME", "1ST_POP_TIME"),
    }
)
"""Properties that say what became of one message, and not what its sender meant; and
those by which a broker would do again what it did with it."""
_BROKERS_OWN = SENT_ONCE | _SENDERS


async def find(admin: Admin, msg_id: str, topic: str | None = None) -> ReceivedMessage:
    """The message with an id: its place's, or with the topic that of its producer.

    Args:
        admin: Asks.
        msg_id: 32 or 56 hexadecimal digits; or whatever a producer made its unique key.
        topic: The message's topic.

    Raises:
        AdminError: There is none, or it takes a topic to find it.
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached.
    """
    if topic is not None:
        found = await admin.query(topic, msg_id, max_messages=1, is_unique_key=True)
        if found:
            return found[0]
    if not is_offset_msg_id(msg_id):
        where = f"topic {topic} has none" if topic else "name its topic with --topic"
        raise AdminError(f"no message has the id {msg_id}: {where}")
    try:
        return await admin.view(msg_id, topic)
    except ResponseError as error:
        raise AdminError(f"no message has the id {msg_id}: {error.remark}") from error


def is_offset_msg_id(text: str) -> bool:
    """Whether an id may name a message's place; those of producers may look alike."""
    try:
        parse_offset_msg_id(text)
    except MessageError:
        return False
    return True


async def by_time(
    admin: Admin, topic: str, begin_ms: int, end_ms: int
) -> AsyncIterator[ReceivedMessage]:
    """The messages of a topic that were stored in a time, oldest first.

    Args:
        admin: Asks.
        topic: Where to look.
        begin_ms: Stored at or after, in milliseconds since 1970, by the broker's clock.
        end_ms: Stored at or before.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached, or refused.
    """
    readers = [
        read(admin, queue, await _offset_at(admin, queue, begin_ms))
        for queue in (await admin.route(topic)).read_queues
    ]
    # One message of each queue is at hand, and the oldest of them is the next.
    heads: list[tuple[int, int, ReceivedMessage]] = []
    for number, reader in enumerate(readers):
        if first := await anext(reader, None):
            heapq.heappush(heads, (first.store_ms, number, first))
    while heads and heads[0][0] <= end_ms:
        _, number, message = heads[0]
        yield message
        if following := await anext(readers[number], None):
            heapq.heapreplace(heads, (following.store_ms, number, following))
        else:
            heapq.heappop(heads)


async def read(
    admin: Admin, queue: MessageQueue, begin: int, end: int | None = None
) -> AsyncIterator[ReceivedMessage]:
    """The messages of a queue, up to where it ends when this begins.

    Args:
        admin: Asks.
        queue: Which one.
        begin: The first offset that is wanted.
        end: One past the last; by default the queue's end.

    Raises:
        RemotingError: The broker cannot be reached, or refused.
    """
    if end is None:
        asked = GetMaxOffset(topic=queue.topic, queue_id=queue.queue_id)
        end = (await admin.ask_broker(queue.broker_name, asked)).header(Offset).offset
    offset = begin
    while offset < end:
        found, after = await pull(admin, queue, offset)
        for message in found:
            if message.queue_offset < end:
                yield message
        if after <= offset:
            return
        offset = after


async def pull(
    admin: Admin,
    queue: MessageQueue,
    offset: int,
    *,
    expression: str = SUB_ALL,
    expression_type: str = TAG,
    count: int = _PULL_COUNT,
) -> tuple[list[ReceivedMessage], int]:
    """Read a queue from an offset on, without a trace and without waiting.

    Returns:
        What was found, and where to go on.

    Raises:
        RemotingError: The broker cannot be reached, or refused.
    """
    asked = PullMessage(
        consumer_group=READER_GROUP,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=count,
        sys_flag=SUBSCRIPTION_FLAG,
        commit_offset=0,
        suspend_timeout_millis=0,
        sub_version=0,
        subscription=expression,
        expression_type=expression_type,
    )
    answer = await admin.ask_broker(queue.broker_name, asked, expect=_FOUND)
    after = answer.header(PullReply).next_begin_offset
    if answer.code != ResponseCode.SUCCESS:
        return [], after
    found = await read_answer(answer.body, queue.broker_name, MAX_ANSWER_BYTES)
    return found, after


async def _offset_at(admin: Admin, queue: MessageQueue, time_ms: int) -> int:
    asked = SearchOffset(
        topic=queue.topic, queue_id=queue.queue_id, timestamp=max(time_ms, 0)
    )
    return (await admin.ask_broker(queue.broker_name, asked)).header(Offset).offset


def copy_of(message: ReceivedMessage, topic: str | None = None) -> Message:
    """A message to send that is like one that was received, as its sender meant it.

    Args:
        message: The one that was received.
        topic: Where to; by default where it was sent first.

    Raises:
        AdminError: Its body is compressed in a way that this client cannot undo.
    """
    if message.compression is not None:
        raise AdminError(
            f"message {message.msg_id} is compressed by {message.compression}, which "
            "cannot be undone here; allowed: none, or zlib of a body of up to "
            f"{MAX_BODY_BYTES} bytes"
        )
    own = message.properties
    if topic is None:
        # A dead letter says where it was sent first; elsewhere, a sender may say so.
        is_dead = message.topic.startswith(DLQ_PREFIX)
        topic = own.get(names.RETRY_TOPIC, message.topic) if is_dead else message.topic
    return Message(
        topic,
        message.body,
        tags=message.tags,
        keys=message.keys,
        sharding_key=own.get(names.SHARDING_KEY),
        properties=senders_own(own),
        flag=message.flag,
    )


def senders_own(properties: Mapping[str, str]) -> dict[str, str]:
    """Choose those of a received message's properties that its sender set."""
    return {
        name: value for name, value in properties.items() if name not in _BROKERS_OWN
    }


class Handled(Struct, frozen=True, rename="camel"):
    """What a consumer made of a message that it was handed."""

    consume_result: str | None = None
    """CR_SUCCESS, CR_LATER, CR_THROW_EXCEPTION ..."""
    remark: str | None = None
    spent_time_mills: int = 0


async def note_resend(admin: Admin, message: ReceivedMessage, to_topic: str) -> None:
    """Say that a message is about to be sent again, for the audit log.

    RocketMQ's own servers do not know it; then nobody is told.

    Raises:
        ResponseError: It may not be sent there.
        RemotingError: No server can be reached.
    """
    note = NoteResend(
        to_topic=to_topic, msg_id=message.offset_msg_id, topic=message.queue.topic
    )
    try:
        await admin.ask_name_server(note)
    except ResponseError as error:
        if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise


async def hand_to(
    admin: Admin, group: str, client_id: str, message: ReceivedMessage
) -> Handled:
    """Have one connected consumer handle a message now, whatever its group has done.

    Raises:
        ResponseError: It is not connected, or did not answer.
        RemotingError: The broker cannot be reached.
    """
    asked = ConsumeMessageDirectly(
        consumer_group=group,
        client_id=client_id,
        msg_id=message.offset_msg_id,
        topic=message.queue.topic,
    )
    answer = await admin.ask(
        host_port.join(*message.store_host), asked, timeout_s=_HANDLE_TIMEOUT_S
    )
    return answer.json(Handled)
