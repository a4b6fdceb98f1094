"""Where a migration's topics stand: how far, how fast, and what is left to do."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

from ropeway.client import admin_topics
from ropeway.client.admin_cut_over import AT_SOURCE, PASSED_ON
from ropeway.client.admin_mirrors import pull
from ropeway.client.errors import AdminError, BadResponseError, TopicNotFoundError
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.client.admin import Admin
    from ropeway.client.admin_mirrors import Mirror, Pair

MIRRORED, MOVED, FINISHED = "mirrored", "moved", "finished"
"""Stages of a topic, beside those of `admin_cut_over`: a mirror, whose producers store
at the source; cut over; the target's own. `AT_SOURCE` says here that the target lacks
it."""


class Standing(NamedTuple):
    """Where a topic stands."""

    topic: str
    stage: str
    missing: int | None = None
    """Messages that the target lacks; None where it is not asked for."""
    behind_s: float | None = None
    """How old the oldest of these is."""
    per_s: float | None = None
    """How many were copied a second, while that was looked at."""
    left_s: float | None = None
    """How long the rest takes at that rate; None where it never ends."""
    why: str = ""
    """Why it is not asked for, if that is no matter of its stage."""


class _Look(NamedTuple):
    at_s: float
    ends: int
    nexts: int
    first: list[tuple[Pair, int]]
    """Queues that lack something, and from which offset on."""


async def standings(
    source: Admin, target: Admin, mirror: Mirror, topics: Sequence[str], look_s: float
) -> list[Standing]:
    """Look twice where each topic stands; nothing is changed.

    Args:
        source: Whose topics move.
        target: Has their mirrors.
        mirror: Knows the queues of both.
        topics: Which.
        look_s: The time between the looks, in seconds; longer is more exact.

    Raises:
        TopicNotFoundError: The source does not have one.
        RemotingError: A server cannot be reached, or refused.
    """
    found: dict[str, Standing] = {}
    pairs: dict[str, list[Pair]] = {}
    for topic in topics:
        stage = await _stage(target, topic)
        found[topic] = Standing(topic, stage)
        if stage in (AT_SOURCE, MIRRORED, PASSED_ON):
            try:
                if stage != AT_SOURCE:
                    pairs[topic] = await mirror.pairs(topic)
            except TopicNotFoundError:
                raise
            except AdminError as error:
                found[topic] = Standing(topic, stage, why=str(error))
    before = {topic: await _look(mirror, source, its) for topic, its in pairs.items()}
    if pairs:
        await asyncio.sleep(look_s)
    for topic, its in pairs.items():
        now = await _look(mirror, source, its)
        found[topic] = await _standing(source, found[topic], before[topic], now)
    return list(found.values())


async def _stage(target: Admin, topic: str) -> str:
    try:
        configs = await admin_topics.configs(target, topic)
    except TopicNotFoundError:
        return AT_SOURCE
    for config in configs.values():
        if config.mirrored is not True:
            return MOVED if isinstance(config.cut_offsets, list) else FINISHED
        if isinstance(config.writes, str) and config.writes != AT_SOURCE:
            return config.writes
    return MIRRORED


async def _look(mirror: Mirror, source: Admin, pairs: Sequence[Pair]) -> _Look:
    nexts = await asyncio.gather(*map(mirror.next_offset, pairs))
    # After these: what is copied meanwhile is not missing.
    spans = await asyncio.gather(*(source.span(pair.source) for pair in pairs))
    first = [
        (pair, at)
        for pair, at, span in zip(pairs, nexts, spans, strict=True)
        if at < span.end
    ]
    ends = sum(span.end for span in spans)
    return _Look(time.monotonic(), ends, sum(nexts), first)


async def _standing(
    source: Admin, standing: Standing, before: _Look, now: _Look
) -> Standing:
    took_s = now.at_s - before.at_s
    per_s = (now.nexts - before.nexts) / took_s
    gained_s = per_s - (now.ends - before.ends) / took_s
    missing = max(0, now.ends - now.nexts)
    left_s = 0.0 if not missing else missing / gained_s if gained_s > 0 else None
    stored_ms = [await _store_ms(source, pair, at) for pair, at in now.first]
    oldest_ms = min(filter(None, stored_ms), default=None)
    behind_s = max(0.0, time.time() - oldest_ms / 1000) if oldest_ms else 0.0
    return standing._replace(
        missing=missing,
        behind_s=round(behind_s, 1),
        per_s=round(per_s, 1),
        left_s=None if left_s is None else round(left_s, 1),
    )


async def _store_ms(source: Admin, pair: Pair, offset: int) -> int | None:
    data = (await pull(source, pair.source, offset)).data
    try:
        return stored.decode(next(iter(stored.split(data)))).store_ms if data else None
    except MessageError as error:
        broker = pair.source.broker_name
        raise BadResponseError(f"broker {broker!r} sent {error}") from error
