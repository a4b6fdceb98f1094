"""How far groups have come, and moving them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from ropeway.client.admin_groups import known
from ropeway.client.errors import AdminError, BadResponseError, ResponseError
from ropeway.client.lags import QueueLag, read_lags, read_offsets
from ropeway.client.message import MessageQueue
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import GetConsumeStats
from ropeway.gateway.wire.commands.group_admin import ResetOffset
from ropeway.gateway.wire.commands.offsets import (
    Offset,
    QueryConsumerOffset,
    UpdateConsumerOffset,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.client.admin import Admin
    from ropeway.client.connection import Response

EARLIEST_MS = 0
LATEST_MS = -1
"""What stands for the end of each queue."""
_COMMITTED = ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND


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
    asked = _asked(group, queue)
    answers = await admin.ask_of_topic(queue.topic, asked, expect=_COMMITTED)
    return _told(answers.get(queue.broker_name))


async def committed_at_broker(
    admin: Admin, group: str, queue: MessageQueue
) -> int | None:
    """Answer as `committed` does, also of topics that no name server is told of.

    Raises:
        RemotingError: The broker cannot be reached, or refused.
    """
    return _told(
        await admin.ask_broker(
            queue.broker_name, _asked(group, queue), expect=_COMMITTED
        )
    )


def _asked(group: str, queue: MessageQueue) -> QueryConsumerOffset:
    return QueryConsumerOffset(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        # Brokers say where a new group would begin, unless they are asked not to.
        set_zero_if_not_found=False,
    )


def _told(answer: Response | None) -> int | None:
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
    dry_run: bool = False,
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
        dry_run: Only say where it would go on.

    Raises:
        AdminError: An offset without a queue, or there is no such group.
        TopicNotFoundError: There is no such topic.
        ResponseError: A broker refused: no such queue, or the offset is not
            in it. Others may have done it.
        RemotingError: A broker cannot be reached.
    """
    if offset is not None and queue_id is None:
        raise AdminError(f"offset {offset} without a queue; an offset is one queue's")
    before = {lag.queue: lag.committed for lag in await progress(admin, group, topic)}
    if dry_run:
        goal = _Goal(time_ms, queue_id, offset, only_back)
        await known(admin, group)
        return await _planned(admin, topic, goal, before)
    asked = ResetOffset(
        group=group,
        topic=topic,
        timestamp=time_ms,
        is_force=not only_back,
        queue_id=-1 if queue_id is None else queue_id,
        offset=offset,
    )
    try:
        answers = await admin.ask_of_topic(topic, asked)
    except ResponseError as error:
        if error.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
            raise
        raise AdminError(f"group {group} does not exist") from error
    moved: list[Moved] = []
    for answer in answers.values():
        try:
            after = read_offsets(answer.body)
        except msgspec.DecodeError as error:
            raise _bad(answer, error) from error
        moved += (Moved(queue, before.get(queue, 0), at) for queue, at in after.items())
    return sorted(moved, key=_queue)


async def planned(
    admin: Admin, group: str, wanted: Mapping[MessageQueue, int]
) -> list[Moved]:
    """What `place` would move; it changes nothing.

    Raises:
        AdminError: There is no such group or queue, or the offset is not in it.
        TopicNotFoundError: There is no such topic.
        RemotingError: A broker cannot be reached, or refused.
    """
    await known(admin, group)
    moved: list[Moved] = []
    for topic in sorted({queue.topic for queue in wanted}):
        there = (await admin.route(topic)).read_queues
        lags = await progress(admin, group, topic)
        before = {lag.queue: lag.committed for lag in lags}
        for queue in sorted(one for one in wanted if one.topic == topic):
            if queue not in there:
                raise AdminError(
                    f"topic {topic} has no queue {queue.queue_id} on broker "
                    f"{queue.broker_name}"
                )
            after = await _within(admin, queue, wanted[queue])
            moved.append(Moved(queue, before.get(queue, 0), after))
    return moved


async def commit(admin: Admin, group: str, queue: MessageQueue, offset: int) -> None:
    """Have a group go on at an offset, as its consumers commit it.

    A broker tells consumers of a reset, and these stop reading for 10 s wherever they
    read (MQClientInstance.resetOffset, RocketMQ 4.9.8 and 5.5.0; Go's likewise).

    Raises:
        RemotingError: The broker cannot be reached, or refused.
    """
    header = UpdateConsumerOffset(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        commit_offset=offset,
    )
    await admin.ask_broker(queue.broker_name, header)


async def place(
    admin: Admin, group: str, wanted: Mapping[MessageQueue, int]
) -> list[Moved]:
    """Have a group go on at these offsets, once all have been found to be there.

    Args:
        admin: Asks.
        group: The group.
        wanted: Where it is to go on in each queue.

    Raises:
        AdminError: As of `planned`; then nothing is moved.
        ResponseError: A broker refused; what was moved before stays so.
        RemotingError: A broker cannot be reached; likewise.
    """
    moved = await planned(admin, group, wanted)
    for one in moved:
        asked = ResetOffset(
            group=group,
            topic=one.queue.topic,
            timestamp=EARLIEST_MS,
            is_force=True,
            queue_id=one.queue.queue_id,
            offset=one.after,
        )
        await admin.ask_broker(one.queue.broker_name, asked)
    return moved


class _Goal(NamedTuple):
    """Where a group is to go on; see `reset`."""

    time_ms: int
    queue_id: int | None
    offset: int | None
    only_back: bool


async def _planned(
    admin: Admin, topic: str, goal: _Goal, before: dict[MessageQueue, int]
) -> list[Moved]:
    """Where brokers would let a group go on, by the same rules."""
    moved = []
    for queue in (await admin.route(topic)).read_queues:
        if goal.queue_id not in (None, queue.queue_id):
            continue
        after = await _after(admin, queue, goal)
        if goal.only_back and queue in before:
            after = min(after, before[queue])
        moved.append(Moved(queue, before.get(queue, 0), after))
    if not moved:
        raise AdminError(f"topic {topic} has no queue {goal.queue_id}")
    return sorted(moved, key=_queue)


async def _after(admin: Admin, queue: MessageQueue, goal: _Goal) -> int:
    if goal.offset is not None:
        return await _within(admin, queue, goal.offset)
    if goal.time_ms == LATEST_MS:
        return (await admin.span(queue)).end
    return await admin.offset_at(queue, goal.time_ms)


async def _within(admin: Admin, queue: MessageQueue, offset: int) -> int:
    span = await admin.span(queue)
    if not span.begin <= offset <= span.end:
        raise AdminError(
            f"offset {offset} of queue {queue.queue_id} of topic {queue.topic}; "
            f"allowed: {span.begin} to {span.end}"
        )
    return offset


def _queue(one: Moved | QueueLag) -> MessageQueue:
    return one.queue


def _bad(answer: Response, error: Exception) -> BadResponseError:
    return BadResponseError(f"{answer.address}: {error}")
