"""Cutting topics over: from a source to their mirrors, which then take messages.

First the target sends on to the source what producers send: they come to it one by one,
with their looks at routes, and nothing else changes. When all have come, it lets them
wait for a moment, the mirror gets the last message, and from the next one on all are
stored at the target. Consumers follow when they have read what is left at the source.

There is no journal beside the clusters: what the target does with messages that are
sent to it says which steps are left. So whatever is killed, running it again goes on.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from ropeway.client import admin_offsets, admin_topics
from ropeway.client.admin_undelivered import Undelivered
from ropeway.client.diagnosis import refusal
from ropeway.client.errors import AdminError, ResponseError, TopicNotFoundError
from ropeway.client.routes import PERM_READ, PERM_WRITE
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import HELD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.client.admin import Admin
    from ropeway.client.admin_mirrors import Mirror, Pair

SETTLE_S = 35.0
"""Clients look for a route's changes every 30 s: pollNameServerInterval's default."""
AT_SOURCE, PASSED_ON, STORED = "at_source", "passed_on", "stored"
"""Where producers' messages are stored: as of `routing.api.Topic.writes`."""
_LOOK_S = 0.5
_NEAR = 500
"""So few messages are copied while producers wait."""
_ATTEMPTS = 20


class Moved(NamedTuple):
    """What a cut-over did."""

    paused_s: float
    """How long producers were held; 0 where that had happened before."""
    left: int
    """Messages that came at the source afterwards, from who had not looked."""


class CutOver:
    """Moves topics, all that are named together; it keeps nothing itself.

    Args:
        source: Whose topics move; their permission is changed there.
        target: Has their mirrors, and leads clients to the source.
        mirror: Copies from the one to the other.
        settle_s: How long producers have to come to the target, and groups to read
            what is left at the source, in seconds.
    """

    def __init__(
        self,
        source: Admin,
        target: Admin,
        mirror: Mirror,
        settle_s: float = SETTLE_S,
    ) -> None:
        self._source = source
        self._target = target
        self._mirror = mirror
        self._settle_s = settle_s
        self._undelivered = Undelivered(source)

    async def not_moved(self, topics: Sequence[str]) -> list[str]:
        """Return those of the topics that have not moved.

        Raises:
            AdminError: One is not at the target: it has to be mirrored first.
            RemotingError: A server cannot be reached, or refused.
        """
        found = []
        for topic in topics:
            try:
                if await self._mirror.is_mirror(topic):
                    found.append(topic)
            except TopicNotFoundError as error:
                raise AdminError(
                    f"topic {topic} is not at the target; mirror it first"
                ) from error
        return found

    async def move(
        self, topics: Sequence[str], groups: Sequence[str], say: Callable[[str], None]
    ) -> Moved:
        """Have topics' messages be stored at the target, and their consumers follow.

        Args:
            topics: As of `not_moved`.
            groups: Go on where they do at the source; they exist at the target.
            say: Told which step begins.

        Raises:
            AdminError: A mirror is none of the topic; or it does not come close enough
                to the source. What is sent goes to the source still.
            RemotingError: A server cannot be reached, or refused; likewise, or all of a
                topic's is stored at the target. Moving them again goes on.
        """
        writes = {topic: await self._writes(topic) for topic in topics}
        left = [topic for topic in topics if writes[topic] != STORED]
        pairs = {
            topic: await (
                self._mirror.prepare(topic)
                if topic in left
                else self._mirror.pairs(topic)
            )
            for topic in topics
        }
        all_pairs = [pair for some in pairs.values() for pair in some]
        paused_s = 0.0
        if left:
            for topic in left:
                if writes[topic] != PASSED_ON:
                    say(f"lead producers of {topic} here, and send on to the source")
                    await admin_topics.lead_writes(self._target, topic, PASSED_ON)
            say(f"wait {self._settle_s:g} s until all producers have come")
            waiting = [pair for topic in left for pair in pairs[topic]]
            await self._until(self._settle_s, waiting, groups)
            for topic in left:
                say(f"store messages of {topic} here")
                paused_s = max(paused_s, await self._store(topic, pairs[topic]))
        ends = await self._ends(all_pairs)
        if groups:
            say("wait until groups have read what is left at the source")
            await self._until_read(all_pairs, groups)
        for topic in topics:
            await admin_topics.update(self._source, topic, perm=PERM_READ)
            say(f"open {topic}")
            await admin_topics.update(self._target, topic, perm=PERM_READ | PERM_WRITE)
        now = await self._ends(all_pairs)
        return Moved(paused_s, sum(now) - sum(ends))

    async def _writes(self, topic: str) -> str:
        (config,) = (await admin_topics.configs(self._target, topic)).values()
        return config.writes if isinstance(config.writes, str) else AT_SOURCE

    async def _until(
        self, seconds: float, pairs: Sequence[Pair], groups: Sequence[str]
    ) -> None:
        """Copy and follow for so long, so that little is left to do."""
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while True:
            await asyncio.gather(*map(self._copy, pairs))
            for group in groups:
                await self._mirror.follow(group, list(pairs))
            if (left_s := end - clock()) <= 0:
                return
            await asyncio.sleep(min(_LOOK_S, left_s))

    async def _store(self, topic: str, pairs: Sequence[Pair]) -> float:
        """From one message to the next; for how long producers were held."""
        clock = asyncio.get_running_loop().time
        for _ in range(_ATTEMPTS):
            await asyncio.gather(*map(self._copy, pairs))
            if await self._missing(pairs) > _NEAR:
                continue
            hold, began = str(uuid4()), clock()
            await admin_topics.lead_writes(self._target, topic, HELD, hold)
            await asyncio.gather(*map(self._copy, pairs))
            if await self._missing(pairs):
                # Somebody sends to the source itself.
                continue
            try:
                await admin_topics.lead_writes(self._target, topic, STORED, hold)
            except ResponseError as error:
                if error.code != ResponseCode.INVALID_PARAMETER:
                    raise
                # It took longer than senders are held, or another node leads.
                continue
            return clock() - began
        raise AdminError(
            f"the mirror of topic {topic} did not come to the source's end in "
            f"{_ATTEMPTS} attempts; let `ropeway migrate mirror` run beside it"
        )

    async def _missing(self, pairs: Sequence[Pair]) -> int:
        nexts = await asyncio.gather(*map(self._mirror.next_offset, pairs))
        return sum(await self._ends(pairs)) - sum(nexts)

    async def _until_read(self, pairs: Sequence[Pair], groups: Sequence[str]) -> None:
        clock = asyncio.get_running_loop().time
        end = clock() + self._settle_s
        places = {(one.source.topic, one.source.broker_name) for one in pairs}
        while True:
            lags = [await self._lag(group, pair) for group in groups for pair in pairs]
            for group in groups:
                await self._mirror.follow(group, list(pairs))
                lags += [await self._retries(*place, group) for place in places]
            if not any(lags) or clock() >= end:
                return
            await asyncio.sleep(_LOOK_S)

    async def _lag(self, group: str, pair: Pair) -> int:
        at = await admin_offsets.committed(self._source, group, pair.source)
        # Who has committed nothing may not read it at all.
        return 0 if at is None else (await self._source.span(pair.source)).end - at

    async def _retries(self, topic: str, broker: str, group: str) -> int:
        """What comes again to pops at the source: nobody pops it there after this."""
        try:
            return await self._undelivered.retries_of_pops(topic, broker, group)
        except ResponseError as error:
            if refusal(error) is None:
                raise
            # Who may not look does not wait.
            return 0

    async def _ends(self, pairs: Sequence[Pair]) -> list[int]:
        spans = (self._source.span(pair.source) for pair in pairs)
        return [span.end for span in await asyncio.gather(*spans)]

    async def _copy(self, pair: Pair) -> None:
        offset = await self._mirror.next_offset(pair)
        async with aclosing(self._mirror.copies(pair, offset)) as copies:
            async for _ in copies:
                pass
