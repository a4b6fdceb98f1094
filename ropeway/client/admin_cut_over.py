"""Cutting topics over: from a source to their mirrors, which then take messages.

There is no journal beside the clusters: the permission at the source, what the mirrors
have, and whether they are mirrors still say which steps are left. So whatever is
killed, running it again goes on.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from ropeway.client import admin_topics
from ropeway.client.errors import AdminError, TopicNotFoundError
from ropeway.client.routes import PERM_READ, PERM_WRITE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.client.admin import Admin
    from ropeway.client.admin_mirrors import Mirror, Pair

SETTLE_S = 35.0
"""Clients look for a route's changes every 30 s: pollNameServerInterval's default."""
_LOOK_S = 0.5


class CutOver:
    """Moves topics, all that are named together; it keeps nothing itself.

    Args:
        source: Whose topics move; their permission is changed there.
        target: Has their mirrors.
        mirror: Copies from the one to the other.
        settle_s: How long nothing must have come at the source, in seconds. RocketMQ's
            brokers store what comes without permission: only clients look at it.
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
    ) -> None:
        """Stop writing to topics at the source, copy the rest, and open the mirrors.

        Args:
            topics: As of `not_moved`.
            groups: Go on where they do at the source; they exist at the target.
            say: Told which step begins.

        Raises:
            AdminError: A mirror is none of the topic, or somebody has allowed writing
                at the source again; the topics stay there.
            RemotingError: A server cannot be reached, or refused; likewise, but for
                those that have been opened.
        """
        pairs = [pair for topic in topics for pair in await self._mirror.prepare(topic)]
        for topic in topics:
            if await self._is_writable(topic):
                say(f"stop writing to {topic} at the source")
                await admin_topics.update(self._source, topic, perm=PERM_READ)
        say(f"wait until nothing has come for {self._settle_s:g} s")
        while True:
            await self._settle(pairs)
            say("copy what is missing")
            for pair in pairs:
                await self._copy(pair)
            for group in groups:
                await self._mirror.follow(group, pairs)
            if await self._are_equal(pairs):
                break
        for topic in topics:
            if await self._is_writable(topic):
                raise AdminError(f"topic {topic} can be written to at the source again")
        for topic in topics:
            say(f"open {topic}")
            await admin_topics.update(self._target, topic, perm=PERM_READ | PERM_WRITE)

    async def _is_writable(self, topic: str) -> bool:
        configs = await admin_topics.configs(self._source, topic)
        return any(config.perm & PERM_WRITE for config in configs.values())

    async def _settle(self, pairs: Sequence[Pair]) -> None:
        clock = asyncio.get_running_loop().time
        ends, since = await self._ends(pairs), clock()
        while (left_s := since + self._settle_s - clock()) > 0:
            await asyncio.sleep(min(_LOOK_S, left_s))
            now = await self._ends(pairs)
            if now != ends:
                ends, since = now, clock()

    async def _ends(self, pairs: Sequence[Pair]) -> list[int]:
        spans = (self._source.span(pair.source) for pair in pairs)
        return [span.end for span in await asyncio.gather(*spans)]

    async def _copy(self, pair: Pair) -> None:
        offset = await self._mirror.next_offset(pair)
        async with aclosing(self._mirror.copies(pair, offset)) as copies:
            async for _ in copies:
                pass

    async def _are_equal(self, pairs: Sequence[Pair]) -> bool:
        nexts = [await self._mirror.next_offset(pair) for pair in pairs]
        return nexts == await self._ends(pairs)
