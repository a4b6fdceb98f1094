"""Which queue moves to a broker with less to do: one, by what is sent to it.

The rules are after those of Pulsar's ThresholdShedder, with messages by the second as a
broker's load: it gives something when it is above the average by more than a threshold,
and what moves must leave the larger of the two smaller than before. So a balanced
cluster makes no moves, and none goes back and forth under an even load.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client import admin_moves, admin_topics
from ropeway.client.admin_moves import Move
from ropeway.client.errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ropeway.client.admin import Admin

THRESHOLD = 0.1
"""Above the average, as a part of it.

loadBalancerBrokerThresholdShedderPercentage is 10, too, but of what a machine can do.
"""
LEAST_PER_S = 1.0
"""A queue with less is not worth a move, as Pulsar says of its bundles."""
OVER_S = 10.0
"""How long rates are measured."""


class LoadMove(Struct, frozen=True):
    """A queue that would move, or has, and why: messages by the second."""

    move: Move
    per_s: float
    """What is sent to the queue."""
    giver_per_s: float
    taker_per_s: float
    average_per_s: float


def is_uneven(loads: Collection[float]) -> bool:
    """Whether the broker with the largest load is too far above the average."""
    return bool(loads) and max(loads) > sum(loads) / len(loads) * (1 + THRESHOLD)


Rates = dict[str, dict[str, list[float]]]
"""What is sent to queues by the second: by topic, broker and queue id."""


def candidates(
    rates: Rates,
    places: Mapping[str, Mapping[str, Sequence[int]]],
    running: Sequence[str],
    least_per_s: float = LEAST_PER_S,
) -> list[LoadMove]:
    """The moves that help, of which one is to be made, the best first.

    Args:
        rates: What was measured.
        places: The partitions of queues, by topic and broker, as they were meanwhile.
        running: The brokers that are to have queues.
        least_per_s: A queue with less does not move.
    """
    load = dict.fromkeys(running, 0.0)
    for brokers in rates.values():
        for broker in brokers.keys() & load.keys():
            load[broker] += sum(brokers[broker])
    if not is_uneven(load.values()):
        return []
    average = sum(load.values()) / len(load)
    giver = max(sorted(load), key=load.__getitem__)
    taker = min(sorted(load), key=load.__getitem__)
    found = []
    for topic, brokers in rates.items():
        ours, there = brokers.get(giver, []), places[topic]
        # A broker gives its last queue alone, and keeps one.
        if len(ours) < 2 or ours[-1] < least_per_s:  # noqa: PLR2004
            continue
        if load[taker] + ours[-1] >= load[giver]:
            continue
        ids = len(ours) - 1, len(there.get(taker, ()))
        move = Move(topic, giver, ids[0], taker, ids[1], there[giver][-1])
        found.append(LoadMove(move, ours[-1], load[giver], load[taker], average))
    return sorted(
        found,
        key=lambda one: (
            max(one.giver_per_s - one.per_s, one.taker_per_s + one.per_s),
            one.move.topic,
        ),
    )


async def plan(
    admin: Admin,
    topics: Sequence[str],
    *,
    over_s: float = OVER_S,
    least_per_s: float = LEAST_PER_S,
) -> list[LoadMove]:
    """Measure what is sent to topics, and say which moves help; see `candidates`.

    Args:
        admin: Asks.
        topics: Of one cluster. Others count as no load.
        over_s: How long to measure.
        least_per_s: A queue with less does not move.

    Raises:
        AdminError: Queues cannot move: the log of a broker is its own.
        ResponseError: There is no such topic, or this is no Ropeway.
        RemotingError: A broker cannot be reached.
    """
    places = {topic: await admin_topics.places(admin, topic) for topic in topics}
    brokers = {broker for one in places.values() for broker in one}
    running = await admin_moves.running(admin, "these topics", brokers)
    # To ask for the ends of queues opens them, and most topics may be idle.
    busy = [
        topic
        for topic in topics
        if (await admin_topics.put_rate(admin, topic)).last_hour
    ]
    before = {topic: await _ends(admin, topic) for topic in busy}
    await asyncio.sleep(over_s)
    after = {topic: await _ends(admin, topic) for topic in busy}
    rates: Rates = {
        topic: {
            broker: [
                _rate(before[topic], after[topic], (broker, queue_id))
                for queue_id in range(len(partitions))
            ]
            for broker, partitions in places[topic].items()
        }
        for topic in busy
    }
    return candidates(rates, places, running, least_per_s)


_Ends = dict[tuple[str, int], tuple[int, float]]
"""How far queues are, and when that was, in seconds."""


async def _ends(admin: Admin, topic: str) -> _Ends:
    spans = await admin_topics.stats(admin, topic)
    now_s = time.monotonic()
    return {
        (one.queue.broker_name, one.queue.queue_id): (one.end, now_s) for one in spans
    }


def _rate(before: _Ends, after: _Ends, queue: tuple[str, int]) -> float:
    if queue not in before or queue not in after:
        return 0.0
    (began, began_s), (ended, ended_s) = before[queue], after[queue]
    return max(ended - began, 0) / max(ended_s - began_s, 0.001)


async def rebalance(admin: Admin, planned: Sequence[LoadMove]) -> LoadMove | None:
    """Make the first of the planned moves that is not refused; None if there is none.

    Raises:
        ResponseError: All were refused; the remark says why the last one was.
        RemotingError: A broker cannot be reached; the queue may have moved.
    """
    refused: ResponseError | None = None
    for one in planned:
        try:
            done = await admin_moves.move(admin, one.move)
        except ResponseError as error:
            refused = error
            continue
        why = one.per_s, one.giver_per_s, one.taker_per_s, one.average_per_s
        return LoadMove(done, *why)
    if refused is not None:
        raise refused
    return None
