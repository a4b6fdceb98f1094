"""Pulling: messages of one queue now, or as soon as there are any.

A slave answers, too, from what it follows. It may be late, so it never says that an
offset is behind the end; and it commits no offsets, as clients know.

Source: PullMessageProcessor.java, DefaultPullMessageResultHandler.java and
DefaultMessageStore.getMessage, RocketMQ 5.3.4.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gateway.node.holds import Hold
from gateway.node.resets import Step
from gateway.processors import creating, pull_answers, reading
from gateway.processors.context import (
    LATER,
    Answer,
    Context,
    ForMasterError,
    Later,
    Refusal,
)
from gateway.processors.judging import judge_again
from gateway.processors.needs import SUB, on_group, on_topic
from gateway.processors.registry import handles
from gateway.processors.throttling import LimitedRead, read_throttled
from gateway.wire.codes import ResponseCode
from gateway.wire.commands.pull import (
    COMMIT_OFFSET_FLAG,
    SUSPEND_FLAG,
    LitePullMessage,
    PullMessage,
)
from storage.api import Chunk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from gateway.node.served_topic import ServedTopic
    from gateway.node.subscriptions import Subscription
    from routing.api import Group
    from storage.api import Filter, Partition

    _Found = Answer | Chunk | Coroutine[None, None, Answer | Later] | Exception
    """What ends the wait of a pull: an answer, or what leads to one."""

MAX_PULL_BYTES = 4 * 1024 * 1024
"""Most that one pull gives, and what one without a limit gets at most."""

MAX_PULL_COUNT = 1024

MAX_SUSPEND_MS = 120_000
"""Longest wait, whatever the client asks for: Java's is 20 or 30 seconds."""


@handles(PullMessage, on_topic(SUB) & on_group(SUB), reads=True)
@handles(LitePullMessage, on_topic(SUB) & on_group(SUB), reads=True)
def pull_message(
    request: PullMessage, context: Context
) -> Answer | Later | Coroutine[None, None, Answer | Later]:
    """Give messages of a queue from an offset on, or wait for some."""
    node = context.node
    group = node.groups.get(request.consumer_group)
    if group is None:
        return _ensure_group_and_pull(request, context)
    topic = node.topics.get(request.topic)
    if topic is None:
        raise Refusal(
            ResponseCode.TOPIC_NOT_EXIST,
            f"topic[{request.topic}] not exist, apply first please!",
        )
    reading.check(request, topic, group)
    subscription = reading.subscription(request, context, group)
    return _Pull(request, context, topic, group, subscription).run()


async def _ensure_group_and_pull(
    request: PullMessage, context: Context
) -> Answer | Later:
    remark = f"subscription group [{request.consumer_group:.200}] does not exist"
    await creating.ensure_group(context, request.consumer_group, remark)
    result = pull_message(request, context)
    return result if isinstance(result, (Answer, Later)) else await result


class _Pull:
    """One pull, perhaps waiting."""

    __slots__ = (
        "_context",
        "_filter",
        "_group",
        "_offset",
        "_partition",
        "_request",
        "_subscription",
        "_topic",
    )

    def __init__(
        self,
        request: PullMessage,
        context: Context,
        topic: ServedTopic,
        group: Group,
        subscription: Subscription,
    ) -> None:
        self._request = request
        self._context = context
        self._topic = topic
        self._group = group
        self._partition: Partition = topic.partitions[request.queue_id]
        self._subscription = subscription
        self._filter: Filter | None = subscription.filter
        self._offset = request.queue_offset

    def run(self) -> Answer | Later | Coroutine[None, None, Answer | Later]:
        """Answer at once, wait for the disk, or wait for messages."""
        request = self._request
        if self._context.node.resets.pending and (elsewhere := self._elsewhere()):
            return elsewhere
        if request.sys_flag & COMMIT_OFFSET_FLAG and request.commit_offset >= 0:
            self._commit()
        partition = self._partition
        first, end = partition.first, partition.end
        offset = self._offset
        if first <= offset < end:
            if self._context.node.quotas.limits_reads and self._is_limited():
                return self._read_throttled()
            chunk = self._read_now()
            if chunk is None:
                return self._read()
            return self._outcome(chunk)
        return self._outside(offset, first, end)

    def _is_limited(self) -> bool:
        quotas = self._context.node.quotas
        return quotas.limits(self._group.name, self._topic.name)

    async def _read_throttled(self) -> Answer | Later:
        """Read when the quotas of topic and group let it."""
        request = self._request
        limited = LimitedRead(
            self._context,
            self._group.name,
            self._topic.name,
            self._max_bytes(),
            request.suspend_timeout_millis if request.sys_flag & SUSPEND_FLAG else 0,
            self._is_still_there,
        )
        chunk = await read_throttled(limited, self._read_now, self._read_chunk)
        return self._not_now() if chunk is None else self._outcome(chunk)

    def _is_still_there(self) -> bool:
        """Whether there is something for the pull, after it has waited."""
        first, end = self._partition.first, self._partition.end
        is_there = first <= self._offset < end
        return is_there and self._may_answer() and not self._is_outdated()

    def _outside(self, offset: int, first: int, end: int) -> Answer | Later:
        """The answer where there is no message at an offset."""
        if offset == end:
            return self._hold("OFFSET_OVERFLOW_ONE" if end else "NO_MESSAGE_IN_QUEUE")
        if offset > end and self._context.as_slave:
            return self._hold_behind_the_end()
        if end == 0:
            remark, next_offset = "NO_MESSAGE_IN_QUEUE", 0
        elif offset < first:
            remark, next_offset = "OFFSET_TOO_SMALL", first
        else:
            remark, next_offset = "OFFSET_OVERFLOW_BADLY", end
        return self._empty(remark, next_offset, ResponseCode.PULL_OFFSET_MOVED)

    def _commit(self) -> None:
        request, node = self._request, self._context.node
        if not self._context.as_slave:
            node.offsets.commit(
                request.consumer_group,
                request.topic,
                request.queue_id,
                request.commit_offset,
            )
        elif node.leadership.is_led_elsewhere():
            raise ForMasterError
        # While nobody leads, reading goes on: clients commit again every few seconds.

    def _hold_behind_the_end(self) -> Answer | Later:
        """The master may have more by now; without one, it comes here in time."""
        if self._context.node.leadership.is_led_elsewhere():
            raise ForMasterError
        return self._hold("OFFSET_OVERFLOW_ONE")

    def _elsewhere(self) -> Answer | Later | None:
        """The answer to a pull where a reset leads elsewhere."""
        node, peer = self._context.node, self._context.peer
        connected = node.clients.consumer_group(self._group.name)
        if connected is not None and connected.data.is_broadcasting:
            # Each of these keeps offsets of its own.
            return None
        step, offset = node.resets.step(
            self._group.name,
            self._topic.name,
            self._request.queue_id,
            peer,
            self._offset,
        )
        if step is Step.GO:
            return None
        if step is Step.WAIT:
            return self._hold("OFFSET_RESET")
        return self._empty("OFFSET_RESET", offset, ResponseCode.PULL_OFFSET_MOVED)

    def _read_now(self) -> Chunk | None:
        return self._partition.read_now(
            self._offset, self._max_count(), self._max_bytes(), self._filter
        )

    async def _read(self) -> Answer | Later:
        return self._outcome(await self._read_chunk())

    async def _read_chunk(self) -> Chunk:
        async with self._context.node.disk_reads:
            return await self._partition.read(
                self._offset, self._max_count(), self._max_bytes(), self._filter
            )

    def _max_count(self) -> int:
        return min(max(self._request.max_msg_nums, 1), MAX_PULL_COUNT)

    def _max_bytes(self) -> int:
        wanted = self._request.max_msg_bytes
        if wanted is None or wanted <= 0:
            return MAX_PULL_BYTES
        return min(wanted, MAX_PULL_BYTES)

    def _outcome(self, chunk: Chunk) -> Answer | Later:
        self._context.node.pulled.put(
            self._group.name,
            self._topic.name,
            self._request.queue_id,
            chunk.next_offset,
        )
        if chunk.records:
            if self._context.peer.congested:
                return self._not_now()
            self._respond(chunk)
            return LATER
        # Nothing matched: the client goes on behind what was looked at, so that a
        # pull never waits with old messages before it.
        return self._empty(
            "NO_MATCHED_MESSAGE",
            chunk.next_offset,
            ResponseCode.PULL_RETRY_IMMEDIATELY,
        )

    def _respond(self, chunk: Chunk) -> None:
        pull_answers.found(
            self._context, self._topic, self._group, self._partition, chunk
        )

    def _empty(
        self,
        remark: str,
        next_offset: int,
        code: ResponseCode = ResponseCode.PULL_NOT_FOUND,
    ) -> Answer:
        place = self._topic, self._group, self._partition
        return pull_answers.empty(code, remark, next_offset, *place)

    def _not_now(self) -> Answer:
        """The client does not take what it has been sent: it may ask again then."""
        return self._empty("NO_MESSAGE_IN_QUEUE", self._offset)

    def _hold(self, remark: str) -> Answer | Later:
        request = self._request
        timeout_ms = min(request.suspend_timeout_millis, MAX_SUSPEND_MS)
        if not request.sys_flag & SUSPEND_FLAG or timeout_ms <= 0:
            return self._empty(remark, self._offset)
        peer = self._context.peer
        hold = Hold(peer, self._wake, self._expire, self._judge)
        if peer.closed or not self._context.node.holds.add(
            self._partition, hold, timeout_ms
        ):
            return self._empty(remark, self._offset)
        peer.hold()
        if self._context.node.guard is not None:
            self._context.node.reauthorization.add(hold)
        # How long it waits from here on is not ours to answer for.
        self._context.came_s = 0.0
        return LATER

    def _judge(self, hold: Hold) -> Awaitable[None] | None:
        """See whether the pull may still wait."""
        return judge_again(self._context, partial(self._leave, hold))

    def _leave(self, hold: Hold) -> bool:
        if not self._context.node.holds.leave(hold):
            return False
        self._context.peer.unhold()
        return True

    def _is_outdated(self) -> bool:
        return reading.is_outdated(
            self._request, self._context, self._topic, self._group, self._subscription
        )

    def _may_answer(self) -> bool:
        node = self._context.node
        if node.leadership.is_certain():
            return True
        return self._context.as_slave and node.topics.follows

    def _wake(self) -> bool:
        """The queue has grown: answer if it has something that is wanted."""
        try:
            found = self._look_again()
        except Exception as error:  # noqa: BLE001 - turned into an answer
            found = error
        if found is None:
            return False
        self._context.peer.unhold()
        self._finish(found)
        return True

    def _look_again(self) -> _Found | None:
        """What to answer; None where the pull waits on."""
        if not self._may_answer():
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
            return self._empty("OFFSET_OVERFLOW_ONE", self._offset, code)
        if self._is_outdated():
            return self._empty("OFFSET_OVERFLOW_ONE", self._offset)
        if self._is_limited():
            return self._read_throttled()
        chunk = self._read_now()
        if chunk is None:
            return self._read()
        if chunk.records == 0 and chunk.next_offset >= self._partition.end:
            self._offset = chunk.next_offset
            return None
        return chunk

    def _expire(self) -> None:
        self._context.peer.unhold()
        try:
            found = self._last_look()
        except Exception as error:  # noqa: BLE001 - turned into an answer
            found = error
        self._finish(found)

    def _last_look(self) -> _Found:
        # Most often there is nothing, or only what the filter keeps out.
        chunk = None
        if (
            self._offset < self._partition.end
            and not self._is_outdated()
            and not self._is_limited()
        ):
            chunk = self._read_now()
        if chunk is not None and chunk.records:
            return chunk
        return self._empty("OFFSET_OVERFLOW_ONE", self._offset)

    def _finish(self, found: _Found) -> None:
        """Answer, now or when it is read."""
        try:
            outcome = self._outcome(found) if isinstance(found, Chunk) else found
            if isinstance(outcome, Exception):
                self._context.fail(outcome)
            elif outcome is not LATER:
                self._answer_or_await(outcome)
        except Exception as error:  # noqa: BLE001 - turned into an answer
            self._context.fail(error)

    def _answer_or_await(
        self, outcome: Answer | Coroutine[None, None, Answer | Later]
    ) -> None:
        if isinstance(outcome, Answer):
            self._context.answer(outcome)
        else:
            self._context.spawn(self._await_and_answer(outcome))

    async def _await_and_answer(
        self, reading: Coroutine[None, None, Answer | Later]
    ) -> None:
        outcome = await reading
        if outcome is not LATER:
            self._context.answer(outcome)
