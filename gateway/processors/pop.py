"""Popping: messages of one queue or of any, now or as soon as there are some.

Source: PopMessageProcessor.java and PopLongPollingService.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING

from gateway.node import attributes, retry_names, subscriptions
from gateway.pop.lines import Waiter
from gateway.pop.taking import MAX_BYTES, Taken, Wanted
from gateway.processors import creating
from gateway.processors.context import LATER, Answer, Context, Later, Refusal
from gateway.processors.judging import judge_waiter
from gateway.processors.needs import SUB, on_popped
from gateway.processors.registry import handles
from gateway.processors.throttling import LimitedRead, pop_throttled
from gateway.wire import receipt
from gateway.wire.codes import ROPEWAY_VERSION, ResponseCode
from gateway.wire.commands.pop import FROM_EARLIEST, PopMessage, PopReply
from gateway.wire.frame import PREFIX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from gateway.bounds import RequestsConfig
    from gateway.node.served_topic import ServedTopic
    from gateway.node.subscriptions import Subscription
    from routing.api import Group

    _Found = Answer | Taken | Coroutine[None, None, Answer | Later] | Exception

MAX_COUNT = 32
MAX_POLL_MS = 120_000
"""Longest wait, whatever the client asks for: Java's is 15 seconds."""

# A `PopReply` as `encode_frame` would make it, with room for what differs.
_FOUND = (
    b'{"code":0,"extFields":{"popTime":"%d","invisibleTime":"%d","reviveQid":"%d",'
    b'"restNum":"%d","startOffsetInfo":"%b","msgOffsetInfo":"%b"%b},'
    b'"flag":1,"language":"JAVA","opaque":%d,"remark":"FOUND",'
    b'"serializeTypeCurrentRPC":"JSON","version":'
    + str(ROPEWAY_VERSION).encode()
    + b"}"
)
_ORDERS = b',"orderCountInfo":"%b"'


@handles(PopMessage, on_popped(SUB))
def pop_message(
    request: PopMessage, context: Context
) -> Answer | Later | Coroutine[None, None, Answer | Later]:
    """Hand messages out, or wait for some."""
    group = context.node.groups.get(request.consumer_group)
    if group is None:
        return _ensure_group_and_pop(request, context)
    topic = check(context, request.topic, request.queue_id, group)
    _check_numbers(request, context)
    subscription = _subscription(
        request.exp or None, request.exp_type or None, context.node.config.requests
    )
    return _Pop(request, context, topic, group, subscription).run()


async def _ensure_group_and_pop(
    request: PopMessage, context: Context
) -> Answer | Later:
    await ensure_group(context, request.consumer_group)
    result = pop_message(request, context)
    return result if isinstance(result, (Answer, Later)) else await result


async def ensure_group(context: Context, name: str) -> Group:
    """As `creating.ensure_group`, with the remark of RocketMQ's pulls and pops."""
    remark = f"subscription group [{name:.200}] does not exist"
    return await creating.ensure_group(context, name, remark)


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


def _check_numbers(request: PopMessage, context: Context) -> None:
    check_count(request.max_msg_nums)
    check_invisible(context, request.invisible_time, 1)


def check_count(count: int) -> None:
    """Refuse what is no number of messages that a pop can take.

    Raises:
        Refusal: It is none.
    """
    if not 0 < count <= MAX_COUNT:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"maxMsgNums is {count}; allowed: 1 to {MAX_COUNT}",
        )


def check_invisible(context: Context, invisible_ms: int, least_ms: int) -> None:
    """Refuse what is no time for which a message can be kept from others.

    Raises:
        Refusal: It is none.
    """
    longest_ms = context.node.pop.ledger.longest_ms
    if not least_ms <= invisible_ms <= longest_ms:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"invisibleTime is {invisible_ms}; allowed: {least_ms} to {longest_ms}",
        )


def _subscription(
    expression: str | None, kind: str | None, limits: RequestsConfig
) -> Subscription:
    if len(expression or "") > subscriptions.KEPT_CHARACTERS:
        return subscriptions.build(expression, kind, 0, limits)
    return _kept_subscription(expression, kind, limits)


@lru_cache(maxsize=1024)
def _kept_subscription(
    expression: str | None, kind: str | None, limits: RequestsConfig
) -> Subscription:
    return subscriptions.build(expression, kind, 0, limits)


def own_retries(context: Context, group: str, topic: str) -> bool:
    """Whether a pop leaves a retry topic alone: by its name it is others', too.

    Who may pop the topic in the group may not read theirs. What the group itself would
    have stored there is stored in a topic that is its alone.
    """
    node = context.node
    if node.guard is None:
        return False
    name = receipt.retry_topic(group, topic, receipt.RETRY_V1)
    if node.topics.get(name) is None:
        return False
    return retry_names.is_shared(name, group, topic, node.groups, node.offsets)


def _priority_percent(topic: ServedTopic, group: Group, request: PopMessage) -> int:
    """Of how many pops in a hundred messages come by their priorities."""
    if not topic.of_priorities or request.order:
        return 0
    return attributes.priority_percent(group.attributes)


class _Pop:
    """One pop, perhaps waiting."""

    __slots__ = ("_context", "_ends_at", "_group", "_request", "_topic", "_wanted")

    def __init__(
        self,
        request: PopMessage,
        context: Context,
        topic: ServedTopic,
        group: Group,
        subscription: Subscription,
    ) -> None:
        self._request = request
        self._context = context
        self._topic = topic
        self._group = group
        self._ends_at = 0.0
        self._wanted = Wanted(
            request.consumer_group,
            request.topic,
            request.queue_id,
            request.max_msg_nums,
            request.invisible_time,
            subscription.filter,
            request.init_mode == FROM_EARLIEST,
            request.order,
            request.attempt_id,
            own_retries(context, group.name, topic.name),
            _priority_percent(topic, group, request),
        )

    def run(self) -> Answer | Later | Coroutine[None, None, Answer | Later]:
        """Answer at once, wait for the disk, or wait for messages."""
        if self._is_limited():
            return self._pop_throttled()
        taken = self._context.node.pop.giving.pop(self._wanted)
        if isinstance(taken, Taken):
            return self._outcome(taken)
        return self._await(taken)

    def _is_limited(self) -> bool:
        quotas = self._context.node.quotas
        return quotas.limits_reads and quotas.limits(self._group.name, self._topic.name)

    async def _pop_throttled(self) -> Answer | Later:
        """Pop when the quotas of topic and group let it."""
        limited = LimitedRead(
            self._context,
            self._group.name,
            self._topic.name,
            MAX_BYTES,
            self._request.poll_time,
            lambda: not self._is_outdated(),
        )
        taken = await pop_throttled(limited, self._wanted)
        if taken is None:
            return self._empty(ResponseCode.POLLING_TIMEOUT, 0, 0)
        return self._outcome(taken)

    async def _await(self, taking: Coroutine[None, None, Taken]) -> Answer | Later:
        async with self._context.node.disk_reads:
            taken = await taking
        return self._outcome(taken)

    def _outcome(self, taken: Taken) -> Answer | Later:
        if taken.count:
            self._respond(taken)
            return LATER
        return self._hold(taken)

    def _respond(self, taken: Taken) -> None:
        context, request = self._context, self._request
        orders = b""
        if taken.orders:
            orders = _ORDERS % ";".join(taken.orders).encode()
        header = _FOUND % (
            taken.pop_ms,
            request.invisible_time,
            receipt.IN_ORDER if request.order else 0,
            taken.rest,
            ";".join(taken.starts).encode(),
            ";".join(taken.offsets).encode(),
            orders,
            context.opaque,
        )
        context.node.traffic.pulled(request.topic, self._group.name, taken.count)
        size = len(header)
        body_bytes = sum(map(len, taken.data))
        context.respond(PREFIX.pack(size + 4 + body_bytes, size) + header, *taken.data)

    def _empty(self, code: ResponseCode, pop_ms: int, rest: int) -> Answer:
        request = self._request
        reply = PopReply(
            pop_time=pop_ms,
            invisible_time=request.invisible_time,
            revive_qid=receipt.IN_ORDER if request.order else 0,
            rest_num=rest,
            start_offset_info="",
            msg_offset_info="",
        )
        return Answer(code, "NO_MESSAGE_IN_QUEUE", reply)

    def _hold(self, taken: Taken) -> Answer | Later:
        loop = asyncio.get_running_loop()
        if not self._ends_at:
            timeout_ms = min(self._request.poll_time, MAX_POLL_MS)
            if timeout_ms <= 0:
                return self._over(taken)
            self._ends_at = loop.time() + timeout_ms / 1000
        peer, pop = self._context.peer, self._context.node.pop
        left_ms = int((self._ends_at - loop.time()) * 1000)
        waiter = Waiter(
            peer, self._request.queue_id, self._look, self._expire, self._judge
        )
        if left_ms <= 0:
            return self._over(taken)
        if peer.closed or not pop.lines.add(
            self._group.name, self._topic, waiter, left_ms
        ):
            return self._empty(ResponseCode.POLLING_FULL, taken.pop_ms, taken.rest)
        peer.hold()
        if self._context.node.guard is not None:
            self._context.node.reauthorization.add(waiter)
        if taken.more:
            # A filter kept everything out so far, and there is more to look at.
            self._look_soon()
        return LATER

    def _look_soon(self) -> None:
        wake = self._context.node.pop.lines.wake
        asyncio.get_running_loop().call_soon(wake, self._group.name, self._topic.name)

    def _over(self, taken: Taken) -> Answer:
        return self._empty(ResponseCode.POLLING_TIMEOUT, taken.pop_ms, taken.rest)

    def _judge(self, waiter: Waiter) -> Awaitable[None] | None:
        return judge_waiter(self._context, waiter)

    def _is_outdated(self) -> bool:
        """Whether group or topic were changed since the pop came, or this node gave up.

        Its client asks again, and is told.
        """
        node = self._context.node
        return (
            not node.leadership.is_certain()
            or node.groups.get(self._group.name) is not self._group
            or node.topics.get(self._topic.name) is not self._topic
        )

    def _look(self) -> bool:
        """There may be something: answer if there is."""
        try:
            found = self._look_throttled() if self._is_limited() else self._look_now()
        except Exception as error:  # noqa: BLE001 - turned into an answer
            found = error
        if found is None:
            return False
        self._context.peer.unhold()
        self._finish(found)
        return True

    def _look_throttled(self) -> _Found | None:
        node = self._context.node
        if self._is_outdated() or node.pop.giving.is_there(self._wanted):
            return None if self._context.peer.congested else self._pop_throttled()
        return None

    def _look_now(self) -> _Found | None:
        if self._is_outdated():
            return self._empty(ResponseCode.POLLING_TIMEOUT, 0, 0)
        if self._context.peer.congested:
            return None
        taken = self._context.node.pop.giving.pop(self._wanted)
        if not isinstance(taken, Taken):
            return self._await(taken)
        if taken.count:
            return taken
        if taken.more:
            self._look_soon()
        return None

    def _finish(self, found: _Found) -> None:
        """Answer, now or when it is read."""
        try:
            if isinstance(found, Taken):
                self._respond(found)
            elif isinstance(found, Answer):
                self._context.answer(found)
            elif isinstance(found, Exception):
                self._context.fail(found)
            else:
                self._context.spawn(self._await_and_answer(found))
        except Exception as error:  # noqa: BLE001 - turned into an answer
            self._context.fail(error)

    async def _await_and_answer(
        self, popping: Coroutine[None, None, Answer | Later]
    ) -> None:
        outcome = await popping
        if isinstance(outcome, Answer):
            self._context.answer(outcome)

    def _expire(self) -> None:
        self._context.peer.unhold()
        self._finish(self._empty(ResponseCode.POLLING_TIMEOUT, 0, 0))
