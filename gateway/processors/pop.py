"""Popping: messages of one queue or of any, now or as soon as there are some.

Source: PopMessageProcessor.java and PopLongPollingService.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node import attributes, retry_names, subscriptions
from ropeway.gateway.node.served_topic import ServedTopic
from ropeway.gateway.node.subscriptions import KEPT_CHARACTERS
from ropeway.gateway.pop.pop_receive import MAX_BYTES, Taken, Wanted
from ropeway.gateway.processors import auto_create
from ropeway.gateway.processors.context import LATER, Answer, Context, Later, Refusal
from ropeway.gateway.processors.long_poll import LongPoll
from ropeway.gateway.processors.needs import SUB, on_popped
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.processors.throttling import LimitedRead, read_throttled
from ropeway.gateway.wire import receipt
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import FROM_EARLIEST, PopMessage, PopReply
from ropeway.gateway.wire.frame import Template
from ropeway.routing.api import Group

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from ropeway.common.eager import Eventual
    from ropeway.gateway.node.subscriptions import Subscription
    from ropeway.gateway.request_limits import RequestsConfig

MAX_COUNT = receipt.MOST_MESSAGES
MAX_POLL_MS = 120_000
"""Longest wait, whatever the client asks for: Java's is 15 seconds."""

_FIELDS = (
    *("pop_time", "invisible_time", "revive_qid", "rest_num"),
    *("start_offset_info", "msg_offset_info"),
)
_found_frame = Template(PopReply, _FIELDS, "FOUND")
_ordered_frame = Template(PopReply, (*_FIELDS, "order_count_info"), "FOUND")


@handles(PopMessage, on_popped(SUB))
def pop_message(request: PopMessage, context: Context) -> Eventual[Answer | Later]:
    """Hand messages out, or wait for some."""
    group = context.node.groups.get(request.consumer_group)
    if group is None:
        return _ensure_group_and_pop(request, context)
    topic = check(context, request.topic, request.queue_id, group)
    if not 0 < request.max_msg_nums <= MAX_COUNT:
        raise wrong_count(request.max_msg_nums)
    longest_ms = context.node.pop.ledger.longest_ms
    if not 0 < request.invisible_time <= longest_ms:
        raise wrong_invisible(request.invisible_time, 1, longest_ms)
    wanted = _wanted(request, context, topic, group)
    return _Pop(context, request, topic, group, wanted).take()


async def _ensure_group_and_pop(
    request: PopMessage, context: Context
) -> Answer | Later:
    await ensure_group(context, request.consumer_group)
    result = pop_message(request, context)
    return result if isinstance(result, (Answer, Later)) else await result


async def ensure_group(context: Context, name: str) -> Group:
    """As `creating.ensure_group`, with the remark of RocketMQ's pulls and pops."""
    remark = f"subscription group [{name:.200}] does not exist"
    return await auto_create.ensure_group(context, name, remark)


def check(context: Context, name: str, queue_id: int, group: Group) -> ServedTopic:
    """The topic, where a group may pop the queue; below 0 any queue.

    Raises:
        Refusal: It may not, or there is no such queue.
    """
    topic = context.node.topics.get(name)
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{name:.200}] not exist, apply first please!",
        )
    if not topic.readable:
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            f"the topic[{name}] peeking message is forbidden",
        )
    queues = topic.setup.read_queue_nums
    if queue_id >= queues:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"queueId[{queue_id}] is illegal, topic {name} has queues "
            f"0 to {queues - 1}; -1 means any",
        )
    if not group.consume_enable:
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            f"subscription group no permission, {group.name}",
        )
    return topic


def wrong_count(count: int) -> Refusal:
    """What is said of a number of messages that no pop can take."""
    return Refusal(
        ResponseCode.INVALID_PARAMETER,
        f"maxMsgNums is {count}; allowed: 1 to {MAX_COUNT}",
    )


def wrong_invisible(invisible_ms: int, least_ms: int, longest_ms: int) -> Refusal:
    """What is said of a time for which no message can be kept from others."""
    return Refusal(
        ResponseCode.INVALID_PARAMETER,
        f"invisibleTime is {invisible_ms}; allowed: {least_ms} to {longest_ms}",
    )


@lru_cache(maxsize=1024)
def _subscription(
    expression: str | None, kind: str | None, limits: RequestsConfig
) -> Subscription:
    return subscriptions.build(expression, kind, 0, limits)


def own_retries(context: Context, group: str, topic: str) -> bool:
    """Whether a pop leaves a retry topic alone: by its name it is others', too.

    Without a guard nobody is kept from it.

    Who may pop the topic in the group may not read theirs. What the group itself would
    have stored there is stored in a topic that is its alone.
    """
    node = context.node
    name = receipt.retry_topic(group, topic, receipt.RETRY_V1)
    if node.topics.get(name) is None:
        return False
    return retry_names.is_shared(name, group, topic, node.groups, node.offsets)


def _wanted(
    request: PopMessage, context: Context, topic: ServedTopic, group: Group
) -> Wanted:
    is_short = len(request.exp or "") <= KEPT_CHARACTERS
    subscription = (_subscription if is_short else _subscription.__wrapped__)(
        request.exp or None, request.exp_type or None, context.node.config.requests
    )
    by_priority = topic.of_priorities and not request.order
    return Wanted(
        group.name,
        topic.name,
        request.queue_id,
        request.max_msg_nums,
        request.invisible_time,
        subscription.filter,
        request.init_mode == FROM_EARLIEST,
        request.order,
        request.attempt_id,
        context.node.guard is not None and own_retries(context, group.name, topic.name),
        attributes.priority_percent(group.attributes) if by_priority else 0,
    )


class _Pop(msgspec.Struct, gc=False):
    """One pop that may be done, perhaps waiting."""

    context: Context
    request: PopMessage
    topic: ServedTopic
    group: Group
    wanted: Wanted
    ends_at: float = 0.0
    """When it has waited for long enough, by the loop's clock; 0: it has not yet."""

    # Taking, with the filter.

    def take(self) -> Eventual[Answer | Later]:
        """Take now what is in memory, or when the quotas or the disk let it."""
        if self.context.node.quotas.limits_reads and self._is_limited():
            return self._take_throttled()
        taken = self.context.node.pop.dispatch.pop(self.wanted)
        if isinstance(taken, Taken):
            return found(taken, self.context) if taken.count else self._wait(taken)
        return self._take_later(taken)

    def _is_limited(self) -> bool:
        quotas = self.context.node.quotas
        return quotas.limits(self.group.name, self.topic.name)

    async def _take_later(self, taking: Awaitable[Taken]) -> Answer | Later:
        async with self.context.node.disk_reads:
            taken = await taking
        return found(taken, self.context) if taken.count else self._wait(taken)

    async def _take_throttled(self) -> Answer | Later:
        """Pop when the quotas of topic and group let it."""
        limited = LimitedRead(
            self.context,
            self.group.name,
            self.topic.name,
            MAX_BYTES,
            self.request.poll_time,
            lambda: not self._is_outdated(),
        )
        taken = await read_throttled(limited, self._take_permitted)
        if taken is None:
            return self._over()
        return found(taken, self.context) if taken.count else self._wait(taken)

    async def _take_permitted(self, from_memory: bool) -> tuple[Taken | None, int]:
        node = self.context.node
        taken = node.pop.dispatch.pop(self.wanted, from_memory=from_memory)
        if not isinstance(taken, Taken):
            async with node.disk_reads:
                taken = await taken
        return taken if taken.count or not taken.cold else None, taken.size_bytes

    # Waiting.

    def _wait(self, taken: Taken) -> Answer | Later:
        """Wait for messages, for what is left of the time that the client gives."""
        now = asyncio.get_running_loop().time()
        if not self.ends_at:
            self.ends_at = now + min(self.request.poll_time, MAX_POLL_MS) / 1000
        left_ms = int((self.ends_at - now) * 1000)
        told = self.wanted, taken.pop_ms, taken.rest
        if left_ms <= 0:
            return empty(ResponseCode.POLLING_TIMEOUT, *told)
        polling, queue_id = self.context.node.pop.polling, self.wanted.queue_id
        poll = LongPoll(self.context, self._look, self._over, queue_id, takes=True)
        key = self.group.name, self.topic.name
        if not poll.wait(polling, key, self.topic.partitions, left_ms):
            return empty(ResponseCode.POLLING_FULL, *told)
        if taken.more:
            # A filter kept everything out so far, and there is more to look at.
            self._look_soon()
        return LATER

    def _look_soon(self) -> None:
        key = self.group.name, self.topic.name
        asyncio.get_running_loop().call_soon(self.context.node.pop.polling.wake, key)

    def _look(self) -> Answer | Coroutine[None, None, Answer | Later] | None:
        """There may be something: what to answer; None where it waits on."""
        dispatch, congested = (
            self.context.node.pop.dispatch,
            self.context.peer.congested,
        )
        outdated = self._is_outdated()
        if self._is_limited():
            there = not congested and (outdated or dispatch.is_there(self.wanted))
            return self._take_throttled() if there else None
        if outdated:
            return self._over()
        if congested:
            return None
        taken = dispatch.pop(self.wanted)
        if not isinstance(taken, Taken):
            return self._take_later(taken)
        if taken.count:
            return found(taken, self.context)
        if taken.more:
            self._look_soon()
        return None

    def _is_outdated(self) -> bool:
        """Whether group or topic were changed since the pop came, or this node gave up.

        Its client asks again, and is told.
        """
        node = self.context.node
        return (
            not node.leadership.is_certain()
            or node.groups.get(self.group.name) is not self.group
            or node.topics.get(self.topic.name) is not self.topic
        )

    # Answering.

    def _over(self) -> Answer:
        """The answer where the time is up, or the client is to ask again."""
        return empty(ResponseCode.POLLING_TIMEOUT, self.wanted, 0, 0)


def found(taken: Taken, context: Context) -> Answer:
    """The answer with messages."""
    wanted = taken.wanted
    context.node.traffic.pulled[wanted.topic][wanted.group] += taken.count
    reply = PopReply(
        taken.pop_ms,
        wanted.invisible_ms,
        receipt.IN_ORDER if wanted.in_order else 0,
        taken.rest,
        ";".join(taken.starts),
        ";".join(taken.offsets),
        ";".join(taken.orders) if taken.orders else None,
    )
    template = _ordered_frame if taken.orders else _found_frame
    code = ResponseCode.SUCCESS
    return Answer(code, "FOUND", reply, None, b"", taken.data, template)


def empty(code: ResponseCode, wanted: Wanted, pop_ms: int, rest: int) -> Answer:
    """The answer without messages."""
    reply = PopReply(
        pop_time=pop_ms,
        invisible_time=wanted.invisible_ms,
        revive_qid=receipt.IN_ORDER if wanted.in_order else 0,
        rest_num=rest,
        start_offset_info="",
        msg_offset_info="",
    )
    return Answer(code, "NO_MESSAGE_IN_QUEUE", reply)
