"""Stored messages, sent to another cluster as their producers sent them.

There they get offsets and store times of their own; all else stays, the time when they
were born among it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.client.admin_messages import SENT_ONCE
from ropeway.client.admin_mirrors import pull
from ropeway.client.errors import BadResponseError
from ropeway.client.routes import DEFAULT_TOPIC
from ropeway.client.send_request import STATUS_OF_CODE
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.commands.send import SendMessageV2, SendReply
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.client.admin import Admin
    from ropeway.client.message import MessageQueue
    from ropeway.gateway.wire.message import Message

ORIGIN = "ROPEWAY_ORIGIN"
"""A property of copies that a rollback sends: TOPIC/QUEUE-ID/OFFSET here."""
_GROUP = "ropeway-migrate"
"""The producer group of what is sent."""
_KEPT_FLAGS = stored.COMPRESSED_FLAG | stored.COMPRESSION_TYPE_MASK
"""What producers say of a body. Brokers add what they know."""


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
    pairs = names.parse(message.properties)
    own = {name: value for name, value in pairs.items() if name not in SENT_ONCE}
    header = SendMessageV2(
        producer_group=_GROUP,
        topic=queue.topic,
        default_topic=DEFAULT_TOPIC,
        default_topic_queue_nums=1,
        queue_id=queue.queue_id,
        sys_flag=message.sys_flag & _KEPT_FLAGS,
        born_timestamp=message.born_ms,
        flag=message.flag,
        properties=names.dump({**own, **(more or {})}),
        reconsume_times=0,
    )
    answer = await admin.ask_broker(
        queue.broker_name, header, message.body, expect=STATUS_OF_CODE
    )
    return answer.header(SendReply).queue_offset
