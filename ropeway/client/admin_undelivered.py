"""Messages of one topic that wait on a broker: for a time, an end, or another try.

RocketMQ's brokers keep them in topics of their own, which are read for it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ropeway.client import admin_copies
from ropeway.client.admin_offsets import committed_at_broker
from ropeway.client.admin_transactions import open_transactions
from ropeway.client.admin_under_way import (
    HALF_GROUP,
    HALF_TOPIC,
    SCHEDULE_GROUP,
    delay_offsets,
    timed_by_topic,
)
from ropeway.client.errors import ResponseError
from ropeway.client.lags import QueueSpan, read_spans
from ropeway.client.send_request import RETRY_PREFIX, SCHEDULE_TOPIC
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import GetTopicStats
from ropeway.gateway.wire.commands.broker_admin import (
    GetAllDelayOffset,
    GetTimerMetrics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.client.admin import Admin

_MOST = 10_000
"""So many that wait at a Ropeway are looked at."""


class Undelivered:
    """Counts them.

    Args:
        admin: Asks; Ropeway's brokers, or RocketMQ's from 4.9 on.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def delayed(self, topic: str, broker: str) -> int:
        """Count what waits at a delay level, retries among it.

        Raises:
            RemotingError: The broker cannot be reached, or refused.
        """
        done: dict[int, int] = {}
        with suppress(ResponseError):
            # A Ropeway keeps it as a group's offsets.
            answer = await self._admin.ask_broker(broker, GetAllDelayOffset())
            done = delay_offsets(answer.body)
        count = 0
        for span in await self._spans(SCHEDULE_TOPIC, broker):
            # Level 1 is queue 0.
            at = done.get(span.queue.queue_id + 1)
            if at is None:
                at = await committed_at_broker(self._admin, SCHEDULE_GROUP, span.queue)
            count += await self._count(topic, span, at)
        return count

    async def timed(self, topic: str, brokers: Iterable[str]) -> int:
        """Count what waits for a time.

        Raises:
            RemotingError: A broker cannot be reached, or refused.
        """
        try:
            return len(await self._admin.waiting(topic, max_messages=_MOST))
        except ResponseError as error:
            if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
        return sum([await self._timed(topic, broker) for broker in brokers])

    async def _timed(self, topic: str, broker: str) -> int:
        try:
            answer = await self._admin.ask_broker(broker, GetTimerMetrics())
        except ResponseError as error:
            if error.code == ResponseCode.NO_PERMISSION:
                raise
            # 4.x has no timed messages, and 5.x may have them switched off.
            return 0
        return timed_by_topic(answer).get(topic, 0)

    async def half(self, topic: str, brokers: Iterable[str]) -> int:
        """Count half messages of transactions that may be open; there may be fewer.

        Raises:
            RemotingError: A broker cannot be reached, or refused.
        """
        try:
            return len(await open_transactions(self._admin, topic=topic, most=_MOST))
        except ResponseError as error:
            if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise
        count = 0
        for broker in brokers:
            for span in await self._spans(HALF_TOPIC, broker):
                at = await committed_at_broker(self._admin, HALF_GROUP, span.queue)
                count += await self._count(topic, span, at)
        return count

    async def retries(self, topic: str, broker: str, group: str) -> int:
        """Count what comes again to a group, and is due.

        Raises:
            RemotingError: The broker cannot be reached, or refused.
        """
        count = await self.retries_of_pops(topic, broker, group)
        for span in await self._spans(f"{RETRY_PREFIX}{group}", broker):
            at = await committed_at_broker(self._admin, group, span.queue)
            count += await self._count(topic, span, at)
        return count

    async def retries_of_pops(self, topic: str, broker: str, group: str) -> int:
        """Count those of them that only pops get.

        Raises:
            RemotingError: The broker cannot be reached, or refused.
        """
        count = 0
        retry = f"{RETRY_PREFIX}{group}"
        # They have topics of their own, with either name.
        for name in (f"{retry}_{topic}", f"{retry}+{topic}"):
            for span in await self._spans(name, broker):
                at = await committed_at_broker(self._admin, group, span.queue)
                count += max(0, span.end - max(at or 0, span.begin))
        return count

    async def _spans(self, topic: str, broker: str) -> list[QueueSpan]:
        # Name servers are not told of all of a broker's own topics.
        answer = await self._admin.ask_broker(
            broker,
            GetTopicStats(topic=topic),
            expect=(ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST),
        )
        found = answer.code == ResponseCode.SUCCESS
        return read_spans(answer.body) if found else []

    async def _count(self, topic: str, span: QueueSpan, at: int | None) -> int:
        """Those of a topic of the broker's that are for one, or came from one."""
        begin = span.begin if at is None else max(at, span.begin)
        count = 0
        async for message in admin_copies.messages(
            self._admin, span.queue, begin, span.end
        ):
            pairs = names.parse(message.properties)
            count += topic in (
                pairs.get(names.REAL_TOPIC),
                pairs.get(names.RETRY_TOPIC),
            )
        return count
