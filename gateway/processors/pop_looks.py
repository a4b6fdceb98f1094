"""Looking at what could be popped, and ending what was.

Source: PeekMessageProcessor.java, NotificationProcessor.java and
PollingInfoProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from ropeway.gateway.pop.pop_receive import MAX_BYTES, Wanted
from ropeway.gateway.processors import pop
from ropeway.gateway.processors.context import LATER, Answer, Context, Later, Refusal
from ropeway.gateway.processors.long_poll import LongPoll
from ropeway.gateway.processors.needs import GET, SUB, UPDATE, on_cluster, on_popped
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.processors.throttling import LimitedRead
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import (
    Notification,
    NotificationReply,
    PeekMessage,
    PollingInfo,
    PollingInfoReply,
    PopReply,
    PopRollback,
)

_FOUND, _EMPTY = "FOUND", "NO_MESSAGE_IN_QUEUE"


@handles(PeekMessage, on_popped(SUB, GET))
async def peek_message(request: PeekMessage, context: Context) -> Answer:
    """Show the next messages, and leave them to whoever pops."""
    group = await pop.ensure_group(context, request.consumer_group)
    pop.check(context, request.topic, request.queue_id, group)
    if not 0 < request.max_msg_nums <= pop.MAX_COUNT:
        raise pop.wrong_count(request.max_msg_nums)
    wanted = Wanted(
        group.name,
        request.topic,
        request.queue_id,
        request.max_msg_nums,
        0,
        own_retries=context.node.guard is not None
        and pop.own_retries(context, group.name, request.topic),
    )
    limited = LimitedRead(
        context, group.name, request.topic, MAX_BYTES, 0, lambda: True
    )
    permit = await limited.acquire(cold=True)
    if permit is None:
        raise Refusal(
            ResponseCode.SYSTEM_BUSY,
            f"the quotas of group {group.name} and topic {request.topic} are used up",
        )
    with permit:
        async with context.node.disk_reads:
            data, rest = await context.node.pop.dispatch.peek(wanted)
        permit.size_bytes = sum(map(len, data))
    code = ResponseCode.SUCCESS if data else ResponseCode.PULL_NOT_FOUND
    reply = PopReply(pop_time=0, invisible_time=0, revive_qid=0, rest_num=rest)
    return Answer(code, _FOUND if data else _EMPTY, reply, records=data)


@handles(Notification, on_popped(SUB))
async def notification(
    request: Notification, context: Context
) -> NotificationReply | Later:
    """Say whether a pop would find something; wait until one would."""
    group = await pop.ensure_group(context, request.consumer_group)
    topic = pop.check(context, request.topic, request.queue_id, group)
    wanted = Wanted(
        group.name,
        request.topic,
        request.queue_id,
        1,
        0,
        in_order=request.order,
        attempt=request.attempt_id,
        own_retries=context.node.guard is not None
        and pop.own_retries(context, group.name, request.topic),
    )

    def look() -> NotificationReply | None:
        is_there = context.node.pop.dispatch.is_there(wanted)
        return NotificationReply(has_msg=True) if is_there else None

    def over() -> NotificationReply:
        return NotificationReply(has_msg=False)

    if there := look():
        return there
    timeout_ms = min(request.poll_time, pop.MAX_POLL_MS)
    if timeout_ms <= 0:
        return over()
    poll = LongPoll(context, look, over, wanted.queue_id)
    polling, key = context.node.pop.polling, (group.name, topic.name)
    if poll.wait(polling, key, topic.partitions, timeout_ms):
        return LATER
    return NotificationReply(has_msg=False, polling_full=True)


@handles(PollingInfo, on_popped(SUB, GET))
async def polling_info(request: PollingInfo, context: Context) -> PollingInfoReply:
    """Say how many pops of a group wait at a queue."""
    group = await pop.ensure_group(context, request.consumer_group)
    pop.check(context, request.topic, request.queue_id, group)
    key = group.name, request.topic
    count = context.node.pop.polling.count(key, request.queue_id)
    return PollingInfoReply(polling_num=count)


@handles(PopRollback, on_cluster(UPDATE))
async def pop_rollback(_: PopRollback, context: Context) -> Answer:
    """Turn messages in flight into retries that come when their time is over."""
    await context.node.pop.roll_back()
    return Answer()
