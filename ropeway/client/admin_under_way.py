"""Messages that are stored and not delivered yet: delays, transactions, pops and so on.

RocketMQ's brokers keep these in topics of their own, and say in different ways how far
they are in them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client.errors import ResponseError
from ropeway.client.lags import QueueSpan
from ropeway.client.send_request import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC
from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.broker_admin import (
    GetAllDelayOffset,
    GetTimerMetrics,
)
from ropeway.gateway.wire.commands.offsets import Offset, QueryConsumerOffset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.client.admin import Admin
    from ropeway.client.connection import Response
    from ropeway.client.lags import QueueLag

SCHEDULE_GROUP = "CID_RMQ_SYS_SCHEDULE"
"""Ropeway's; RocketMQ keeps how far it is elsewhere."""
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
HALF_GROUP = "CID_RMQ_SYS_TRANS"
_REVIVE_PREFIX = "rmq_sys_REVIVE_LOG_"
_REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
_MOST = 10_000
"""Ropeway lists what waits; no more of a broker than that is counted."""

# fastjson writes numbers as names, which is no JSON.
_LEVEL = re.compile(rb"(\d+)\s*:\s*(\d+)")


class UnderWay(Struct, frozen=True, kw_only=True):
    """How much of a kind a broker holds that nobody has got yet."""

    kind: str
    """delayed, timed, half, popped, retry or dead."""
    broker: str
    """Empty: all brokers together."""
    messages: int
    """Of pops: records of them and their acknowledgements, for up to 32 messages."""
    is_bound: bool = False
    """Whether there may be fewer."""
    topics: dict[str, int] = {}
    """How many by the topic that they are for, where the broker tells."""


class Reading(Struct, frozen=True, kw_only=True):
    """What is known of a broker before it is asked for more."""

    broker: str
    cluster: str
    address: str
    is_ropeway: bool
    spans: list[QueueSpan]
    """Of all its topics."""

    def of(self, topic: str) -> list[QueueSpan]:
        """The queues of one of its topics."""
        return [span for span in self.spans if span.queue.topic == topic]


class _TimingCount(Body, frozen=True):
    count: int


class _TimerMetrics(Body, frozen=True):
    timing_count: dict[str, _TimingCount]


async def under_way(
    admin: Admin,
    brokers: Sequence[Reading],
    lags: Sequence[QueueLag],
    untold: list[str],
) -> list[UnderWay]:
    """What brokers hold that nobody has got yet; kinds that they have none of are not.

    Args:
        admin: Asks.
        brokers: The brokers.
        lags: How far all groups are.
        untold: Gets a sentence for each thing that a broker does not tell.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    found: list[UnderWay] = []
    for one in brokers:
        found += _kept(one, lags)
        found += await _behind(admin, one, "half", HALF_TOPIC, HALF_GROUP)
        if one.is_ropeway:
            found += await _behind(
                admin, one, "delayed", SCHEDULE_TOPIC, SCHEDULE_GROUP
            )
        else:
            found += await _delayed(admin, one, untold)
            found += await _timed(admin, one, untold)
            revive = f"{_REVIVE_PREFIX}{one.cluster}"
            found += await _behind(admin, one, "popped", revive, _REVIVE_GROUP)
    if any(one.is_ropeway for one in brokers):
        found.append(await _waiting(admin))
        untold.append("how many messages are popped and not acknowledged")
    return [one for one in found if one.messages]


def _kept(one: Reading, lags: Sequence[QueueLag]) -> list[UnderWay]:
    """Retries that are due, and dead letters."""
    committed = {lag.queue: lag.committed for lag in lags}
    retries: Counter[str] = Counter()
    dead: Counter[str] = Counter()
    for span in one.spans:
        topic = span.queue.topic
        if topic.startswith(RETRY_PREFIX):
            # A group that never came so far has no offset there.
            done = max(span.begin, committed.get(span.queue, 0))
            retries[topic] += max(0, span.end - done)
        elif topic.startswith(DLQ_PREFIX):
            dead[topic] += span.end - span.begin
    return [_counted("retry", one, retries), _counted("dead", one, dead)]


def _counted(kind: str, one: Reading, topics: dict[str, int]) -> UnderWay:
    some = {name: count for name, count in topics.items() if count}
    return UnderWay(
        kind=kind, broker=one.broker, messages=sum(some.values()), topics=some
    )


async def _waiting(admin: Admin) -> UnderWay:
    topics = Counter(one.topic for one in await admin.waiting(max_messages=_MOST))
    return UnderWay(
        kind="timed", broker="", messages=topics.total(), topics=dict(topics)
    )


async def _delayed(admin: Admin, one: Reading, untold: list[str]) -> list[UnderWay]:
    spans = one.of(SCHEDULE_TOPIC)
    if not any(span.end > span.begin for span in spans):
        return []
    try:
        answer = await admin.ask(one.address, GetAllDelayOffset())
    except ResponseError as error:
        if error.code == ResponseCode.NO_PERMISSION:
            raise
        untold.append(f"how many messages of delay levels wait; {error}")
        return []
    done = delay_offsets(answer.body)
    # Level 1 is queue 0.
    left = sum(
        max(0, span.end - max(span.begin, done.get(span.queue.queue_id + 1, 0)))
        for span in spans
    )
    return [UnderWay(kind="delayed", broker=one.broker, messages=left)]


def delay_offsets(body: bytes) -> dict[int, int]:
    """Read how far a broker is in each delay level: what GET_ALL_DELAY_OFFSET tells."""
    return {int(level): int(offset) for level, offset in _LEVEL.findall(body)}


async def _timed(admin: Admin, one: Reading, untold: list[str]) -> list[UnderWay]:
    try:
        answer = await admin.ask(one.address, GetTimerMetrics())
    except ResponseError as error:
        if error.code == ResponseCode.NO_PERMISSION:
            raise
        if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            untold.append(f"how many timed messages wait; {error}")
        # 4.x has no timed messages.
        return []
    topics = timed_by_topic(answer)
    revive = [name for name in topics if name.startswith(_REVIVE_PREFIX)]
    checkpoints = sum(topics.pop(name) for name in revive)
    return [
        _counted("timed", one, topics),
        UnderWay(kind="popped", broker=one.broker, messages=checkpoints),
    ]


def timed_by_topic(answer: Response) -> dict[str, int]:
    """Read how many timed messages wait for each topic: GET_TIMER_METRICS tells."""
    counts = answer.json(_TimerMetrics).timing_count
    return {name: max(0, of.count) for name, of in counts.items()}


async def _behind(
    admin: Admin, one: Reading, kind: str, topic: str, group: str
) -> list[UnderWay]:
    """What the broker's own group has not looked at in a topic of the broker's."""
    left = 0
    for span in one.of(topic):
        asked = QueryConsumerOffset(
            consumer_group=group,
            topic=topic,
            queue_id=span.queue.queue_id,
            set_zero_if_not_found=False,
        )
        answer = await admin.ask(
            one.address,
            asked,
            expect=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        is_there = answer.code == ResponseCode.SUCCESS
        done = answer.header(Offset).offset if is_there else span.begin
        left += max(0, span.end - max(span.begin, done))
    return [UnderWay(kind=kind, broker=one.broker, messages=left, is_bound=True)]
