"""How far groups have come, and moving them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ropeway.client.errors import AdminError, BadResponseError
from ropeway.client.lags import QueueLag, read_lags, read_offsets
from ropeway.client.message import MessageQueue
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import GetConsumeStats
from ropeway.gateway.wire.commands.group_admin import ResetOffset
from ropeway.gateway.wire.commands.offsets import Offset, QueryConsumerOffset

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.client.connection import Response

EARLIEST_MS = 0
LATEST_MS = -1
"""What stands for the end of each queue."""


class Moved(Struct, frozen=True):
    """Where a group was in a queue, and where it goes on."""

    queue: MessageQueue
    before: int
    after: int


async def progress(
    admin: Admin, group: str, topic: str | None = None
) -> list[QueueLag]:
    """How far a group has come in each queue; of all its topics, or of one.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached, or refused.
    """
    if topic is None:
        return await admin.describe_group(group)
    asked = GetConsumeStats(consumer_group=group, topic=topic, topic_list=topic)
    lags: list[QueueLag] = []
    for answer in (await admin.ask_of_topic(topic, asked)).values():
        try:
            lags += read_lags(answer.body)
        except msgspec.DecodeError as error:
            raise _bad(answer, error) from error
    return sorted((lag for lag in lags if lag.queue.topic == topic), key=_queue)


async def committed(admin: Admin, group: str, queue: MessageQueue) -> int | None:
    """Where a group goes on in a queue; None where it has never been there.

    Raises:
        TopicNotFoundError: There is no such topic.
        RemotingError: The broker cannot be reached, or refused.
    """
    asked = QueryConsumerOffset(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        # Brokers say where a new group would begin, unless they are asked not to.
        set_zero_if_not_found=False,
    )
    answers = await admin.ask_of_topic(
        queue.topic, asked, expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND)
    )
    answer = answers.get(queue.broker_name)
    if answer is None or answer.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    return answer.header(Offset).offset


async def reset(
    admin: Admin,
    group: str,
    topic: str,
    *,
    time_ms: int = EARLIEST_MS,
    queue_id: int | None = None,
    offset: int | None = None,
    only_back: bool = False,
) -> list[Moved]:
    """Have a group go on elsewhere in a topic, on every broker that has it.

    Connected consumers follow within seconds; absent ones go on there when they come.

    Args:
        admin: Asks.
        group: The group.
        topic: The topic.
        time_ms: At the first message stored then or later, in milliseconds since 1970;
            `EARLIEST_MS` and `LATEST_MS` are the ends.
        queue_id: Only in this queue of each broker.
        offset: At this offset, whatever the time; with `queue_id`.
        only_back: Leave it where it is in queues where that would skip messages.

    Raises:
        AdminError: An offset without a queue.
        TopicNotFoundError: There is no such topic.
        ResponseError: A broker refused: no such group or queue, or the offset is not
            in it. Others may have done it.
        RemotingError: A broker cannot be reached.
    """
    if offset is not None and queue_id is None:
        raise AdminError(f"offset {offset} without a queue; an offset is one queue's")
    before = {lag.queue: lag.committed for lag in await progress(admin, group, topic)}
    asked = ResetOffset(
        group=group,
        topic=topic,
        timestamp=time_ms,
        is_force=not only_back,
        queue_id=-1 if queue_id is None else queue_id,
        offset=offset,
    )
    moved: list[Moved] = []
    for answer in (await admin.ask_of_topic(topic, asked)).values():
        try:
            after = read_offsets(answer.body)
        except msgspec.DecodeError as error:
            raise _bad(answer, error) from error
        moved += (Moved(queue, before.get(queue, 0), at) for queue, at in after.items())
    return sorted(moved, key=_queue)


def _queue(one: Moved | QueueLag) -> MessageQueue:
    return one.queue


def _bad(answer: Response, error: Exception) -> BadResponseError:
    return BadResponseError(f"{answer.address}: {error}")
