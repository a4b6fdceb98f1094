"""Ending a migration: what of topics that moved is at the source alone.

Late messages came to the source after the cut-over: from producers with old routes, or
since their time had come or their transaction ended. They are sent here, each once: who
has its unique key here is here already. What waits at the source is counted; it gets
late when it is delivered there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client import admin_copies, admin_groups, admin_offsets, admin_topics
from ropeway.client.admin_transactions import open_transactions
from ropeway.client.admin_under_way import (
    HALF_GROUP,
    HALF_TOPIC,
    SCHEDULE_GROUP,
    delay_offsets,
    timed_by_topic,
)
from ropeway.client.errors import AdminError, ResponseError, TopicNotFoundError
from ropeway.client.lags import QueueSpan, read_spans
from ropeway.client.message import MessageQueue
from ropeway.client.send_request import RETRY_PREFIX, SCHEDULE_TOPIC
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import FINISHED, GetTopicStats
from ropeway.gateway.wire.commands.broker_admin import (
    GetAllDelayOffset,
    GetTimerMetrics,
)
from ropeway.gateway.wire.commands.offsets import Offset, QueryConsumerOffset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.client.admin import Admin
    from ropeway.gateway.wire.bodies import TopicConfig
    from ropeway.gateway.wire.message import Message

_MOST = 10_000
"""So many that wait at a Ropeway are looked at."""


class Left(Struct, frozen=True, kw_only=True):
    """Messages of a topic that are at the source alone."""

    late: int = 0
    """Came to its queues after the cut-over."""
    delayed: int = 0
    """Wait at a delay level, retries among them."""
    timed: int = 0
    """Wait for a time."""
    half: int = 0
    """Of transactions that may be open; there may be fewer."""
    retry: int = 0
    """Come again to a group there."""
    unread: int = 0
    """Not read by groups that have no offset here."""

    @property
    def waits(self) -> bool:
        """Whether some may get fewer by waiting."""
        return bool(self.delayed or self.timed or self.half or self.retry)

    @property
    def stays(self) -> bool:
        """Whether some cannot be brought here now."""
        return self.waits or bool(self.unread)


class Finish:
    """Ends migrations of topics; it keeps nothing itself.

    Args:
        source: Where they came from; it is read.
        target: A Ropeway of one broker, where they are now.
    """

    def __init__(self, source: Admin, target: Admin) -> None:
        self._source = source
        self._target = target

    async def config(self, topic: str) -> TopicConfig:
        """How a topic is set up here, which was cut over and is not finished.

        Raises:
            AdminError: It is not here, is a mirror still, or came from nowhere.
            RemotingError: A server cannot be reached, or refused.
        """
        return (await self._here(topic))[1]

    async def _here(self, topic: str) -> tuple[str, TopicConfig]:
        try:
            found = await admin_topics.configs(self._target, topic)
        except TopicNotFoundError as error:
            raise AdminError(f"topic {topic} is not at the target") from error
        ((broker, config), *others) = found.items()
        if config.mirrored is True:
            raise AdminError(f"topic {topic} has not moved; cut it over first")
        if others or not isinstance(config.cut_offsets, list):
            raise AdminError(f"topic {topic} was not cut over here, or is finished")
        return broker, config

    async def look(self, topic: str) -> Left:
        """Count what of a topic is at the source alone; nothing is changed.

        Raises:
            AdminError: As of `config`; or it is on several brokers of the source.
            RemotingError: A server cannot be reached, or refused.
        """
        config = await self.config(topic)
        broker = await self._broker(topic)
        if broker is None:
            return Left()
        late = 0
        async for _ in self._late(topic, broker, config):
            late += 1
        groups = await admin_groups.groups_of(self._source, topic)
        return Left(
            late=late,
            delayed=await self._delayed(topic, broker),
            timed=await self._timed(topic, broker),
            half=await self._half(topic, broker),
            retry=sum([await self._retries(topic, broker, group) for group in groups]),
            unread=sum(
                [await self._unread(topic, broker, group, config) for group in groups]
            ),
        )

    async def bring(self, topic: str) -> int:
        """Send late messages here, behind what is here; how many.

        Raises:
            AdminError: As of `look`.
            RemotingError: A server cannot be reached, or refused; bringing them again
                goes on.
        """
        ours, config = await self._here(topic)
        broker = await self._broker(topic)
        if broker is None:
            return 0
        count = 0
        async for message in self._late(topic, broker, config):
            queue = MessageQueue(topic, ours, message.queue_id)
            await admin_copies.send(self._target, queue, message)
            count += 1
        return count

    async def end(self, topic: str) -> None:
        """Forget that a topic came from the source.

        Raises:
            AdminError: As of `config`.
            RemotingError: The target cannot be reached, or refused.
        """
        await self.config(topic)
        await admin_topics.lead_writes(self._target, topic, FINISHED)

    async def _broker(self, topic: str) -> str | None:
        """Where the source has a topic; None where it is deleted there."""
        try:
            found = await admin_topics.configs(self._source, topic)
        except TopicNotFoundError:
            return None
        if len(found) != 1:
            raise AdminError(
                f"topic {topic} is on brokers {', '.join(sorted(found))} of the source"
                "; allowed: one"
            )
        return next(iter(found))

    async def _late(
        self, topic: str, broker: str, config: TopicConfig
    ) -> AsyncIterator[Message]:
        assert isinstance(config.cut_offsets, list), "it was cut over"
        for queue_id, cut in enumerate(config.cut_offsets):
            queue = MessageQueue(topic, broker, queue_id)
            end = (await self._source.span(queue)).end
            async for message in admin_copies.messages(self._source, queue, cut, end):
                if not await self._is_here(topic, message):
                    yield message

    async def _is_here(self, topic: str, message: Message) -> bool:
        key = names.parse(message.properties).get(names.UNIQ_KEY)
        if key is None:
            return False
        return bool(
            await self._target.query(topic, key, max_messages=1, is_unique_key=True)
        )

    async def _delayed(self, topic: str, broker: str) -> int:
        done: dict[int, int] = {}
        with suppress(ResponseError):
            # A Ropeway keeps it as a group's offsets.
            answer = await self._source.ask_broker(broker, GetAllDelayOffset())
            done = delay_offsets(answer.body)
        count = 0
        for span in await self._spans(SCHEDULE_TOPIC, broker):
            # Level 1 is queue 0.
            at = done.get(span.queue.queue_id + 1)
            if at is None:
                at = await self._committed(SCHEDULE_GROUP, span.queue)
            count += await self._count(topic, span, at)
        return count

    async def _timed(self, topic: str, broker: str) -> int:
        try:
            return len(await self._source.waiting(topic, max_messages=_MOST))
        except ResponseError as error:
            if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
        try:
            answer = await self._source.ask_broker(broker, GetTimerMetrics())
        except ResponseError as error:
            if error.code == ResponseCode.NO_PERMISSION:
                raise
            # 4.x has no timed messages, and 5.x may have them switched off.
            return 0
        return timed_by_topic(answer).get(topic, 0)

    async def _half(self, topic: str, broker: str) -> int:
        try:
            return len(await open_transactions(self._source, topic=topic, most=_MOST))
        except ResponseError as error:
            if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
        count = 0
        for span in await self._spans(HALF_TOPIC, broker):
            at = await self._committed(HALF_GROUP, span.queue)
            count += await self._count(topic, span, at)
        return count

    async def _retries(self, topic: str, broker: str, group: str) -> int:
        count = 0
        retry = f"{RETRY_PREFIX}{group}"
        # Those of pops have topics of their own, with either name.
        for name in (retry, f"{retry}_{topic}", f"{retry}+{topic}"):
            for span in await self._spans(name, broker):
                at = await self._committed(group, span.queue)
                is_own = name != retry
                count += await self._count(topic, span, at, every=is_own)
        return count

    async def _unread(
        self, topic: str, broker: str, group: str, config: TopicConfig
    ) -> int:
        assert isinstance(config.cut_offsets, list), "it was cut over"
        ours, _ = await self._here(topic)
        count = 0
        for queue_id, cut in enumerate(config.cut_offsets):
            here = MessageQueue(topic, ours, queue_id)
            there = MessageQueue(topic, broker, queue_id)
            at = await self._committed(group, there)
            if at is None or at >= cut:
                continue
            if await admin_offsets.committed(self._target, group, here) is None:
                count += cut - at
        return count

    async def _spans(self, topic: str, broker: str) -> list[QueueSpan]:
        # Name servers are not told of all of a broker's own topics.
        answer = await self._source.ask_broker(
            broker,
            GetTopicStats(topic=topic),
            expect=(ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST),
        )
        found = answer.code == ResponseCode.SUCCESS
        return read_spans(answer.body) if found else []

    async def _committed(self, group: str, queue: MessageQueue) -> int | None:
        asked = QueryConsumerOffset(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            set_zero_if_not_found=False,
        )
        answer = await self._source.ask_broker(
            queue.broker_name,
            asked,
            expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        found = answer.code == ResponseCode.SUCCESS
        return answer.header(Offset).offset if found else None

    async def _count(
        self, topic: str, span: QueueSpan, at: int | None, *, every: bool = False
    ) -> int:
        """Those of a topic of the broker's that are for one, or came from one."""
        begin = span.begin if at is None else max(at, span.begin)
        if every:
            return max(0, span.end - begin)
        count = 0
        async for message in admin_copies.messages(
            self._source, span.queue, begin, span.end
        ):
            pairs = names.parse(message.properties)
            count += topic in (
                pairs.get(names.REAL_TOPIC),
                pairs.get(names.RETRY_TOPIC),
            )
        return count
