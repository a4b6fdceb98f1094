"""Stored messages, sent to another cluster as their producers sent them.

There they get offsets and store times of their own; all else stays, the time when they
were born among it: to the millisecond, or, of those that go in a batch, to `APART_MS`.
A broker answers a request for a queue before it is sent the next one, since it keeps
the order of no others; so a busy queue can be sent in batches alone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.client.admin_messages import SENT_ONCE
from ropeway.client.admin_mirrors import pull
from ropeway.client.admin_nodes import Facts
from ropeway.client.errors import AdminError, BadResponseError, ResponseError
from ropeway.client.routes import DEFAULT_TOPIC
from ropeway.client.send_request import MIGRATION_GROUP, STATUS_OF_CODE
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.broker_admin import GetBrokerRuntimeInfo
from ropeway.gateway.wire.commands.send import (
    SendBatchMessage,
    SendMessageV2,
    SendReply,
)
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ropeway.client.admin import Admin
    from ropeway.client.message import MessageQueue
    from ropeway.gateway.wire.message import Message

ORIGIN = "ROPEWAY_ORIGIN"
"""A property of copies that a rollback sends: TOPIC/QUEUE-ID/OFFSET here."""
_KEPT_FLAGS = stored.COMPRESSED_FLAG | stored.COMPRESSION_TYPE_MASK
"""What producers say of a body. Brokers add what they know."""


APART_MS = 10
"""Messages of a batch have one time when they were born: the first one's, which was so
much before or after theirs at most."""
BATCH_MESSAGES, BATCH_BYTES = 128, 256 << 10
"""The most in a batch."""


_LOOK_S = 0.1
_SHOWN_S = 60.0


async def until_shown(admin: Admin, broker: str) -> None:
    """Wait until a broker of RocketMQ shows in queues what it has acknowledged by now.

    It stores messages in a log, and makes the queues of them behind that; it tells how
    far. A Ropeway does not, for it shows what it acknowledges; and who may not ask does
    not wait.

    Raises:
        AdminError: It does not come so far.
        RemotingError: It cannot be reached.
    """
    clock = asyncio.get_running_loop().time
    end_s, goal = clock() + _SHOWN_S, None
    while True:
        try:
            answer = await admin.ask_broker(broker, GetBrokerRuntimeInfo())
        except ResponseError as error:
            if error.code == ResponseCode.NO_PERMISSION:
                return
            raise
        facts = answer.json(Facts).table
        end, behind = facts.get("commitLogMaxOffset"), facts.get("dispatchBehindBytes")
        if end is None or behind is None:
            return
        goal = int(end) if goal is None else goal
        if int(end) - int(behind) >= goal:
            return
        if clock() >= end_s:
            raise AdminError(
                f"broker {broker} does not show in its queues what it had stored "
                f"{_SHOWN_S:g} s ago; it is {behind} bytes behind"
            )
        await asyncio.sleep(_LOOK_S)


async def messages(
    admin: Admin, queue: MessageQueue, begin: int, end: int
) -> AsyncIterator[Message]:
    """Read the messages of a queue as they are stored.

    Args:
        admin: Asks.
        queue: Which one.
        begin: The first offset that is wanted; what is gone by now is passed over.
        end: One past the last.

    Raises:
        RemotingError: The broker cannot be reached, or refused.
    """
    offset = max(begin, (await admin.span(queue)).begin)
    while offset < end:
        found = await pull(admin, queue, offset)
        if not found.data:
            return
        try:
            some = [stored.decode(data) for data in stored.split(found.data)]
        except MessageError as error:
            raise BadResponseError(
                f"broker {queue.broker_name!r} sent {error}"
            ) from error
        for one in some:
            if offset <= one.queue_offset < end:
                yield one
        offset = found.next_offset


async def send(
    admin: Admin,
    queue: MessageQueue,
    message: Message,
    more: dict[str, str] | None = None,
) -> int:
    """Have a queue of another cluster store a message; its offset there.

    Args:
        admin: Asks there.
        queue: Where to.
        message: What was read.
        more: Properties that it gets beside its own.

    Raises:
        RemotingError: The broker cannot be reached, or refused. If it does not answer,
            it may have stored it.
    """
    return await send_all(admin, queue, [(message, more or {})])


async def send_all(
    admin: Admin, queue: MessageQueue, given: Sequence[tuple[Message, dict[str, str]]]
) -> int:
    """Have a queue of another cluster store messages, all or none; the first's offset.

    Args:
        admin: Asks there.
        queue: Where to.
        given: One message, or some that `together` has found, each with the properties
            that it gets beside its own.

    Raises:
        RemotingError: The broker cannot be reached, or refused. If it does not answer,
            it may have stored them.
    """
    entries = [
        BatchEntry(message.flag, message.body, _properties(message, more))
        for message, more in given
    ]
    first, is_batch = given[0][0], len(given) > 1
    header = (SendBatchMessage if is_batch else SendMessageV2)(
        producer_group=MIGRATION_GROUP,
        topic=queue.topic,
        default_topic=DEFAULT_TOPIC,
        default_topic_queue_nums=1,
        queue_id=queue.queue_id,
        sys_flag=first.sys_flag & _KEPT_FLAGS,
        born_timestamp=first.born_ms,
        flag=0 if is_batch else first.flag,
        properties=names.dump({names.WAIT: "true"})
        if is_batch
        else entries[0].properties,
        reconsume_times=0,
        batch=is_batch,
    )
    body = encode_batch(entries) if is_batch else first.body
    answer = await admin.ask_broker(
        queue.broker_name, header, body, expect=STATUS_OF_CODE
    )
    return answer.header(SendReply).queue_offset


def _properties(message: Message, more: dict[str, str]) -> str:
    pairs = names.parse(message.properties)
    own = {name: value for name, value in pairs.items() if name not in SENT_ONCE}
    return names.dump({**own, **more})


async def together(found: AsyncIterator[Message]) -> AsyncIterator[list[Message]]:
    """Group messages of a queue that can be sent in one request, in their order."""
    group: list[Message] = []
    size = 0
    async for message in found:
        if group and not (
            len(group) < BATCH_MESSAGES
            and size + len(message.body) <= BATCH_BYTES
            and abs(message.born_ms - group[0].born_ms) <= APART_MS
            # A batch is of messages that are not compressed.
            and not (message.sys_flag | group[0].sys_flag) & _KEPT_FLAGS
        ):
            yield group
            group, size = [], 0
        group.append(message)
        size += len(message.body)
    if group:
        yield group
