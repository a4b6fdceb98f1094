"""Messages that wait at a delay level: those sent with one, and retries.

Brokers keep them in queues of a topic of their own, one for each level, and each queue
is in the order in which they are due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client import admin_messages, admin_nodes, admin_offsets
from ropeway.client.admin_under_way import SCHEDULE_GROUP
from ropeway.client.errors import TopicNotFoundError
from ropeway.client.send_request import SCHEDULE_TOPIC
from ropeway.gateway.wire import properties as names

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.client.message import MessageQueue, ReceivedMessage

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MOST_LOOKS = 10_000
"""Messages of any topic that are looked at in each level of a broker."""


class Delayed(Struct, frozen=True):
    """A message that waits at a delay level."""

    topic: str
    """Where it is for: `%RETRY%group` where it is a retry."""
    deliver_ms: int
    """When it is due, in milliseconds since 1970."""
    msg_id: str
    """Its unique key."""
    level: int
    """From 1 on."""


async def delayed(
    admin: Admin, topic: str | None = None, *, max_messages: int = 100
) -> list[Delayed]:
    """Messages that wait at delay levels of Ropeway's brokers, the soonest first.

    Args:
        admin: Asks.
        topic: Only those for it.
        max_messages: The most of each level of each broker.

    Raises:
        ResponseError: A broker refused: it takes the right to read its own topic.
        RemotingError: A broker cannot be reached.
    """
    try:
        queues = (await admin.route(SCHEDULE_TOPIC)).read_queues
    except TopicNotFoundError:
        return []
    levels = {
        name: await _levels_ms(admin, name)
        for name in {queue.broker_name for queue in queues}
    }
    found: list[Delayed] = []
    for queue in queues:
        delays = levels[queue.broker_name]
        # There may have been more levels before; the node gives these the last one's.
        delay_ms = delays[min(queue.queue_id, len(delays) - 1)]
        found += await _of_level(admin, queue, delay_ms, topic, max_messages)
    return sorted(found, key=lambda one: one.deliver_ms)


async def _levels_ms(admin: Admin, broker: str) -> list[int]:
    settings = await admin_nodes.master_settings(admin, broker)
    words = settings["messageDelayLevel"].split()
    return [int(word[:-1]) * _UNITS_MS[word[-1]] for word in words]


async def _of_level(
    admin: Admin, queue: MessageQueue, delay_ms: int, topic: str | None, most: int
) -> list[Delayed]:
    found: list[Delayed] = []
    looks = 0
    done = await admin_offsets.committed(admin, SCHEDULE_GROUP, queue) or 0
    async for message in admin_messages.read(admin, queue, done):
        looks += 1
        one = _read(message, queue.queue_id + 1, delay_ms)
        if topic in (None, one.topic):
            found.append(one)
        if len(found) == most or looks == _MOST_LOOKS:
            break
    return found


def _read(message: ReceivedMessage, level: int, delay_ms: int) -> Delayed:
    topic = message.properties.get(names.REAL_TOPIC, "")
    return Delayed(topic, message.store_ms + delay_ms, message.msg_id, level)
