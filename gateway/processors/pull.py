"""Pulling: messages of one queue now, or as soon as there are any.

A slave answers, too, from what it follows. It may be late, so it never says that an
offset is behind the end; and it commits no offsets, as clients know.

Source: PullMessageProcessor.java, DefaultPullMessageResultHandler.java and
DefaultMessageStore.getMessage, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node.resets import Step
from ropeway.gateway.node.served_topic import ServedTopic
from ropeway.gateway.node.subscriptions import Subscription, build
from ropeway.gateway.processors import auto_create
from ropeway.gateway.processors.context import (
    LATER,
    Answer,
    Context,
    ForMasterError,
    Later,
    Refusal,
)
from ropeway.gateway.processors.long_poll import LongPoll
from ropeway.gateway.processors.needs import SUB, on_group, on_topic
from ropeway.gateway.processors.pull_subscription import is_outdated, of_heartbeats
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.processors.throttling import LimitedRead, read_throttled
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pull import (
    COMMIT_OFFSET_FLAG,
    SUBSCRIPTION_FLAG,
    SUSPEND_FLAG,
    LitePullMessage,
    PullMessage,
    PullReply,
)
from ropeway.gateway.wire.frame import Template
from ropeway.routing.api import Group
from ropeway.storage.api import Partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.common.eager import Eventual
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.storage.api import Chunk, Filter

    _Found = Eventual[Answer]

MAX_SUSPEND_MS = 120_000
"""Longest wait, whatever the client asks for: Java's is 20 or 30 seconds."""

found_frame = Template(
    PullReply,
    (
        *("suggest_which_broker_id", "group_sys_flag", "next_begin_offset"),
        *("max_offset", "min_offset", "topic_sys_flag"),
    ),
    "FOUND",
)


@handles(PullMessage, on_topic(SUB) & on_group(SUB), reads=True)
@handles(LitePullMessage, on_topic(SUB) & on_group(SUB), reads=True)
def pull_message(request: PullMessage, context: Context) -> Eventual[Answer | Later]:
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
    is_there = 0 <= request.queue_id < topic.setup.read_queue_nums
    if not (is_there and topic.readable and group.consume_enable):
        raise _forbidden(request, topic, group)
    if request.sys_flag & SUBSCRIPTION_FLAG:
        wanted = build(
            request.subscription,
            request.expression_type,
            request.sub_version,
            node.config.requests,
        )
    else:
        wanted = of_heartbeats(request, context, group)
    partition, offset = topic.partitions[request.queue_id], request.queue_offset
    pull = _Pull(context, request, topic, group, partition, wanted, offset)
    if node.resets.pending and (elsewhere := pull.elsewhere()):
        return elsewhere
    if request.sys_flag & COMMIT_OFFSET_FLAG and request.commit_offset >= 0:
        _commit(request, context)
    first, end = partition.first, partition.end
    if first <= offset < end:
        return pull.read()
    return pull.outside(first, end)


async def _ensure_group_and_pull(
    request: PullMessage, context: Context
) -> Answer | Later:
    remark = f"subscription group [{request.consumer_group:.200}] does not exist"
    await auto_create.ensure_group(context, request.consumer_group, remark)
    result = pull_message(request, context)
    return result if isinstance(result, (Answer, Later)) else await result


def _forbidden(request: PullMessage, topic: ServedTopic, group: Group) -> Refusal:
    """What is said to a group that may not read the queue that a pull names."""
    if not group.consume_enable:
        remark = f"subscription group no permission, {request.consumer_group}"
        return Refusal(ResponseCode.NO_PERMISSION, remark)
    if not topic.readable:
        remark = f"the topic[{request.topic}] pulling message is forbidden"
        return Refusal(ResponseCode.NO_PERMISSION, remark)
    return Refusal(
        ResponseCode.INVALID_PARAMETER,
        f"queueId[{request.queue_id}] is illegal, topic {request.topic} has queues "
        f"0 to {topic.setup.read_queue_nums - 1}",
    )


def _commit(request: PullMessage, context: Context) -> None:
    node = context.node
    if not context.as_slave:
        node.offsets.commit(
            request.consumer_group,
            request.topic,
            request.queue_id,
            request.commit_offset,
        )
    elif node.leadership.is_led_elsewhere():
        raise ForMasterError
    # While nobody leads, reading goes on: clients commit again every few seconds.


class _Pull(msgspec.Struct, gc=False):
    """One pull that may be done, perhaps waiting."""

    context: Context
    request: PullMessage
    topic: ServedTopic
    group: Group
    partition: Partition
    subscription: Subscription
    offset: int
    """From where on it reads; further, the more it has looked at."""

    # Before there is anything to read.

    def elsewhere(self) -> Answer | Later | None:
        """The answer to a pull where a reset leads elsewhere."""
        node = self.context.node
        connected = node.clients.consumer_group(self.group.name)
        if connected is not None and connected.data.is_broadcasting:
            # Each of these keeps offsets of its own.
            return None
        step, offset = node.resets.step(
            self.group.name,
            self.topic.name,
            self.request.queue_id,
            self.context.peer,
            self.offset,
        )
        if step is Step.GO:
            return None
        if step is Step.WAIT:
            return self._wait("OFFSET_RESET")
        return self._empty("OFFSET_RESET", offset, ResponseCode.PULL_OFFSET_MOVED)

    def outside(self, first: int, end: int) -> Answer | Later:
        """The answer where there is no message at the offset, or a wait for one."""
        offset = self.offset
        if offset == end:
            return self._wait("OFFSET_OVERFLOW_ONE" if end else "NO_MESSAGE_IN_QUEUE")
        if offset > end and self.context.as_slave:
            # The master may have more by now; without one, it comes here in time.
            if self.context.node.leadership.is_led_elsewhere():
                raise ForMasterError
            return self._wait("OFFSET_OVERFLOW_ONE")
        if end == 0:
            remark, next_offset = "NO_MESSAGE_IN_QUEUE", 0
        elif offset < first:
            remark, next_offset = "OFFSET_TOO_SMALL", first
        else:
            remark, next_offset = "OFFSET_OVERFLOW_BADLY", end
        return self._empty(remark, next_offset, ResponseCode.PULL_OFFSET_MOVED)

    # Reading, with the filter.

    def read(self) -> _Found:
        """Read now what is in memory, or when the quotas or the disk let it."""
        if self.context.node.quotas.limits_reads and self._is_limited():
            return self._read_throttled()
        chunk = self.partition.read_now(*self._wants())
        return self._read_later() if chunk is None else self._found(chunk)

    def _is_limited(self) -> bool:
        quotas = self.context.node.quotas
        return quotas.limits(self.group.name, self.topic.name)

    def _wants(
        self, *, is_on_disk: bool = False
    ) -> tuple[int, int, int, Filter | None]:
        """What the pull reads: from where, how many, of how many bytes, and which."""
        request, pulls = self.request, self.context.node.config.pulls
        if request.bulk:
            count, size = pulls.bulk_count, pulls.bulk_size_bytes
        elif is_on_disk:
            count, size = pulls.disk_count, pulls.disk_size_bytes
        else:
            count, size = pulls.count, pulls.size_bytes
        most, most_bytes = request.max_msg_nums, request.max_msg_bytes
        if not 0 < most <= count:
            most = count if most > 0 else 1
        if most_bytes is None or not 0 < most_bytes <= size:
            most_bytes = size
        return self.offset, most, most_bytes, self.subscription.filter

    async def _read_later(self) -> Answer:
        return self._found(await self._read_chunk())

    async def _read_chunk(self) -> Chunk:
        async with self.context.node.disk_reads:
            return await self.partition.read(*self._wants(is_on_disk=True))

    async def _read_throttled(self) -> Answer:
        """Read when the quotas of topic and group let it."""
        request = self.request
        limited = LimitedRead(
            self.context,
            self.group.name,
            self.topic.name,
            self._wants()[2],
            request.suspend_timeout_millis if request.sys_flag & SUSPEND_FLAG else 0,
            self._is_still_there,
        )
        chunk = await read_throttled(limited, self._read_permitted)
        return self._not_now() if chunk is None else self._found(chunk)

    async def _read_permitted(self, from_memory: bool) -> tuple[Chunk | None, int]:
        chunk = self.partition.read_now(*self._wants())
        if from_memory and (chunk is None or chunk.cold):
            return None, 0
        if chunk is None:
            chunk = await self._read_chunk()
        return chunk, sum(map(len, chunk.data))

    def _is_still_there(self) -> bool:
        """Whether there is something for the pull, after it has waited."""
        is_there = self.partition.first <= self.offset < self.partition.end
        return is_there and self._may_answer() and not self._is_outdated()

    # Waiting.

    def _wait(self, remark: str) -> Answer | Later:
        """Wait for messages, if the client says that it would."""
        request, partition = self.request, self.partition
        timeout_ms = min(request.suspend_timeout_millis, MAX_SUSPEND_MS)
        if request.sys_flag & SUSPEND_FLAG and timeout_ms > 0:
            poll = LongPoll(self.context, self._look_again, self._last_look)
            pull_hold = self.context.node.pull_hold
            if poll.wait(pull_hold, partition, (partition,), timeout_ms):
                return LATER
        return self._empty(remark, self.offset)

    def _look_again(self) -> _Found | None:
        """The queue has grown: what to answer; None where nothing of it is wanted."""
        if not self._may_answer():
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
            return self._empty("OFFSET_OVERFLOW_ONE", self.offset, code)
        if self._is_outdated():
            return self._empty("OFFSET_OVERFLOW_ONE", self.offset)
        if self._is_limited():
            return self._read_throttled()
        chunk = self.partition.read_now(*self._wants())
        if chunk is None:
            return self._read_later()
        if chunk.records == 0 and chunk.next_offset >= self.partition.end:
            self.offset = chunk.next_offset
            return None
        return self._found(chunk)

    def _last_look(self) -> Answer:
        """The time is up: most often there is nothing, or nothing that is wanted."""
        chunk = None
        if (
            self.offset < self.partition.end
            and not self._is_outdated()
            and not self._is_limited()
        ):
            chunk = self.partition.read_now(*self._wants())
        if chunk is not None and chunk.records:
            return self._found(chunk)
        return self._empty("OFFSET_OVERFLOW_ONE", self.offset)

    def _may_answer(self) -> bool:
        node = self.context.node
        if node.leadership.is_certain():
            return True
        return self.context.as_slave and node.topics.follows

    def _is_outdated(self) -> bool:
        return is_outdated(
            self.request, self.context, self.topic, self.group, self.subscription
        )

    # Answering.

    def _found(self, chunk: Chunk) -> Answer:
        """The answer to what was read."""
        node, group, topic = self.context.node, self.group.name, self.topic.name
        next_offset = chunk.next_offset
        node.pulled.of_topics[topic][group, self.request.queue_id] = next_offset
        if not chunk.records:
            # Nothing matched: the client goes on behind what was looked at, so that a
            # pull never waits with old messages before it.
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
            return self._empty("NO_MATCHED_MESSAGE", next_offset, code)
        if self.context.peer.congested:
            return self._not_now()
        node.traffic.pulled[topic][group] += chunk.records
        return self._answer(ResponseCode.SUCCESS, "FOUND", next_offset, chunk.data)

    def _not_now(self) -> Answer:
        """The client does not take what it has been sent: it may ask again then."""
        return self._empty("NO_MESSAGE_IN_QUEUE", self.offset)

    def _empty(
        self,
        remark: str,
        next_offset: int,
        code: ResponseCode = ResponseCode.PULL_NOT_FOUND,
    ) -> Answer:
        return self._answer(code, remark, next_offset)

    def _answer(
        self,
        code: ResponseCode,
        remark: str,
        next_offset: int,
        records: Sequence[Buffer] = (),
    ) -> Answer:
        """The answer with messages, or without."""
        reply = PullReply(
            self.group.broker_id,
            next_offset,
            self.partition.first,
            self.partition.end,
            topic_sys_flag=self.topic.setup.topic_sys_flag,
            group_sys_flag=self.group.group_sys_flag,
        )
        template = found_frame if records else None
        return Answer(code, remark, reply, None, b"", records, template)
