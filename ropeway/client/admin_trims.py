"""Giving up the oldest messages of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client.message import MessageQueue
from ropeway.gateway.wire.commands.trims import TopicTrimmed, TrimTopic

if TYPE_CHECKING:
    from ropeway.client.admin import Admin

EVERYTHING_MS = -1
"""All that is there."""


class Trimmed(Struct, frozen=True):
    """Where a queue began and begins."""

    queue: MessageQueue
    before: int
    after: int


async def trim(
    admin: Admin,
    topic: str,
    *,
    time_ms: int = EVERYTHING_MS,
    queue_id: int | None = None,
    offset: int | None = None,
    dry_run: bool = False,
) -> list[Trimmed]:
    """Give up the oldest messages of a topic, on every broker that has it.

    Args:
        admin: Asks.
        topic: The topic.
        time_ms: What was stored before goes.
        queue_id: Only of this queue of each broker.
        offset: What is below it goes, with `queue_id`, and not by time.
        dry_run: Only say what would be.

    Raises:
        TopicNotFoundError: There is no such topic.
        ResponseError: A broker refused; others may have done it.
        RemotingError: A broker cannot be reached.
    """
    asked = TrimTopic(
        topic=topic,
        timestamp=time_ms,
        queue_id=-1 if queue_id is None else queue_id,
        offset=offset,
        dry_run=dry_run,
    )
    answers = await admin.ask_of_topic(topic, asked)
    return [
        Trimmed(MessageQueue(topic, name, one.queue_id), one.before, one.after)
        for name, answer in answers.items()
        for one in answer.json(TopicTrimmed).queues
    ]
