"""What `ropeway group list` and `ropeway top` say of a group."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ropeway.client import admin_groups, admin_topics
from ropeway.client.errors import TopicNotFoundError
from ropeway.gateway.cli.rows.groups import GroupRow
from ropeway.gateway.cli.times import time_text

if TYPE_CHECKING:
    from ropeway.client import Admin


async def sized(admin: Admin, name: str, *, sizes: bool) -> GroupRow:
    """A group with its lag over all its topics.

    Args:
        admin: Asks.
        name: The group's.
        sizes: Also who is in it, and how much it is given.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    lags = await admin.describe_group(name)
    lag = sum(one.lag for one in lags)
    if not sizes:
        return GroupRow(group=name, lag=lag, queues=len(lags))
    rates = []
    lag_bytes: list[int | None] = []
    by_topic: Counter[str] = Counter()
    for one in lags:
        by_topic[one.queue.topic] += one.lag
    for topic, waits in sorted(by_topic.items()):
        try:
            rates.append(await admin_topics.get_rate(admin, name, topic))
            lag_bytes.append(await admin_topics.lag_bytes(admin, topic, waits))
        except TopicNotFoundError:
            # It was deleted meanwhile.
            continue
    done_ms = max((one.done_ms for one in lags), default=0)
    return GroupRow(
        group=name,
        lag=lag,
        approx_lag_bytes=_sum(lag_bytes),
        queues=len(lags),
        topics=len(by_topic),
        members=len((await admin_groups.membership(admin, name)).members),
        out_per_s=round(sum(one.per_s for one in rates), 2),
        out_last_hour=sum(one.last_hour for one in rates),
        done_until=time_text(done_ms) if done_ms else "",
    )


def _sum(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
