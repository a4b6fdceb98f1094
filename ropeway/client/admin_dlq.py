"""A group's dead letters: looking at them, and giving them back.

A dead letter stays where it is when it is replayed. How far replaying has come is kept
as the offset of a group of our own, so each is replayed once, or twice after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ropeway.client import admin_messages, admin_nodes, admin_offsets
from ropeway.client.errors import AdminError, TopicNotFoundError
from ropeway.client.message import (
    ReceivedMessage,
)
from ropeway.client.send_request import DLQ_PREFIX, RETRY_PREFIX
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.bodies import GroupConfig, encode
from ropeway.gateway.wire.commands.admin import CreateGroup
from ropeway.gateway.wire.commands.offsets import (
    GetMinOffset,
    Offset,
)
from ropeway.gateway.wire.message_id import parse_offset_msg_id, unpack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.client.admin import Admin
    from ropeway.client.message import (
        Message,
        MessageQueue,
        SendResult,
    )
    from ropeway.client.producer import Producer

REPLAY_GROUP = "ropeway-dlq"
"""Its offsets say how far dead letters have been replayed."""


class DeadLetter(Struct, frozen=True):
    """A message that its group could not handle."""

    message: ReceivedMessage
    is_replayed: bool

    @property
    def topic(self) -> str:
        """Where it was sent to."""
        return self.message.properties.get(names.RETRY_TOPIC, self.message.topic)


async def dead_letters(
    admin: Admin, group: str, *, replayed_too: bool = False
) -> AsyncIterator[DeadLetter]:
    """A group's dead letters, queue by queue, oldest first.

    Args:
        admin: Asks.
        group: The group.
        replayed_too: Also those that were replayed before.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    for queue in await _queues(admin, group):
        asked = GetMinOffset(topic=queue.topic, queue_id=queue.queue_id)
        answer = await admin.ask_broker(queue.broker_name, asked)
        oldest = answer.header(Offset).offset
        done = await admin_offsets.committed(admin, REPLAY_GROUP, queue) or 0
        begin = oldest if replayed_too else max(oldest, done)
        async for message in admin_messages.read(admin, queue, begin):
            yield DeadLetter(message, message.queue_offset < done)


async def count(admin: Admin, group: str) -> int:
    """How many dead letters of a group have not been replayed.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    total = 0
    for queue in await _queues(admin, group):
        span = await admin.span(queue)
        done = await admin_offsets.committed(admin, REPLAY_GROUP, queue) or 0
        total += max(0, span.end - max(span.begin, done))
    return total


async def _queues(admin: Admin, group: str) -> tuple[MessageQueue, ...]:
    try:
        return (await admin.route(f"{DLQ_PREFIX}{group}")).read_queues
    except TopicNotFoundError:
        return ()


async def replay(
    admin: Admin,
    producer: Producer,
    group: str,
    *,
    to_topic: str | None = None,
    most: int | None = None,
) -> AsyncIterator[tuple[DeadLetter, SendResult]]:
    """Give dead letters back, and remember which.

    They go to the group's retry topic, so that no other group gets them; it has all
    its tries anew.

    Args:
        admin: Asks.
        producer: Sends.
        group: The group.
        to_topic: Send them to this topic instead, for all groups that consume it.
        most: Stop after so many.

    Raises:
        AdminError: The group consumes in order, and cannot have retries.
        RemotingError: A broker cannot be reached, or refused.
    """
    left = most
    keeper = Keeper(admin)
    async for letter in dead_letters(admin, group):
        if left == 0:
            return
        await keeper.prepare()
        sent = await producer.send(_again(group, letter, to_topic))
        await keeper.keep(letter)
        if to_topic is None and keeper.is_dead_again(sent):
            raise AdminError(
                f"group {group} consumes in order, so its broker takes no retries and "
                "made the message a dead letter again; replay to a topic instead"
            )
        yield letter, sent
        if left is not None:
            left -= 1


def _again(group: str, letter: DeadLetter, to_topic: str | None) -> Message:
    if to_topic is not None:
        return admin_messages.copy_of(letter.message, to_topic)
    copy = admin_messages.copy_of(letter.message, f"{RETRY_PREFIX}{group}")
    origin = letter.message.properties.get(names.ORIGIN_MESSAGE_ID)
    led_out = {
        names.RETRY_TOPIC: letter.topic,
        names.ORIGIN_MESSAGE_ID: origin or letter.message.offset_msg_id,
    }
    return msgspec.structs.replace(copy, properties={**copy.properties, **led_out})


class Keeper:
    """Remembers at the brokers how far replaying has come."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._is_prepared = False
        self._is_ropeway = False

    async def prepare(self) -> None:
        """Make our own group, before the first dead letter is sent."""
        if self._is_prepared:
            return
        group = GroupConfig(group_name=REPLAY_GROUP)
        await self._admin.ask_masters(CreateGroup(), encode(group))
        nodes = await admin_nodes.nodes(self._admin)
        self._is_ropeway = all(one.status for one in nodes if one.rank == 0)
        self._is_prepared = True

    async def keep(self, letter: DeadLetter) -> None:
        """Count one as replayed, and all before it."""
        queue = letter.message.queue
        behind = letter.message.queue_offset + 1
        await admin_offsets.commit(self._admin, REPLAY_GROUP, queue, behind)

    def is_dead_again(self, sent: SendResult) -> bool:
        """Whether the broker put a retry among the dead letters; only ours shows it."""
        identity = parse_offset_msg_id(sent.offset_msg_id).message_id
        return self._is_ropeway and not unpack(identity).retry
