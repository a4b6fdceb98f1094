"""Ending a migration: what of topics that moved is at the source alone.

Late messages came to the source after the cut-over: from producers with old routes, or
since their time had come or their transaction ended. They are sent here, each once: who
has its unique key here is here already. What waits at the source is counted; it gets
late when it is delivered there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ropeway.client import admin_copies, admin_groups, admin_offsets, admin_topics
from ropeway.client.admin_undelivered import Undelivered
from ropeway.client.errors import AdminError, TopicNotFoundError
from ropeway.client.message import MessageQueue
from ropeway.client.routes import PERM_READ
from ropeway.client.spread_queues import in_order
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.commands.admin import FINISHED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.client.admin import Admin
    from ropeway.gateway.wire.bodies import TopicConfig
    from ropeway.gateway.wire.message import Message


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
    absent: bool = False
    """No broker has the topic now: it is deleted there, or its broker is away."""

    @property
    def waits(self) -> bool:
        """Whether some may get fewer by waiting."""
        return bool(
            self.delayed or self.timed or self.half or self.retry or self.absent
        )

    @property
    def stays(self) -> bool:
        """Whether some cannot be brought here now."""
        return self.waits or bool(self.unread)


class _Cut(NamedTuple):
    """A queue of the source, and where it ended in the cut-over."""

    there: MessageQueue
    end: int
    here: MessageQueue


class Finish:
    """Ends migrations of topics; it keeps nothing itself.

    Args:
        source: Where they came from; it is read.
        target: A Ropeway, where they are now.
    """

    def __init__(self, source: Admin, target: Admin) -> None:
        self._source = source
        self._target = target
        self._undelivered = Undelivered(source)
        self._brought: dict[MessageQueue, int] = {}
        """Up to which offset late messages of the source's queues are here."""

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
            AdminError: As of `config`; or the source does not have all its queues now.
            RemotingError: A server cannot be reached, or refused.
        """
        config = await self.config(topic)
        cuts = await self._cuts(topic, config)
        late = 0
        for queue, cut, _ in cuts:
            end = (await self._source.span(queue)).end
            late += len([one async for one in self._late(queue, cut, end)])
        if not cuts:
            return Left(absent=True)
        groups = await admin_groups.groups_of(self._source, topic)
        brokers = sorted({queue.broker_name for queue, _, _ in cuts})
        waiting = self._undelivered
        return Left(
            late=late,
            delayed=sum([await waiting.delayed(topic, one) for one in brokers]),
            timed=await waiting.timed(topic, brokers),
            half=await waiting.half(topic, brokers),
            retry=sum(
                [
                    await waiting.retries(topic, one, group)
                    for one in brokers
                    for group in groups
                ]
            ),
            unread=sum([await self._unread(group, cuts) for group in groups]),
        )

    async def bring(self, topic: str) -> int:
        """Send late messages here, behind what is here; how many.

        Raises:
            AdminError: As of `look`.
            RemotingError: A server cannot be reached, or refused; bringing them again
                goes on.
        """
        _, config = await self._here(topic)
        count = 0
        for queue, cut, here in await self._cuts(topic, config):
            begin = max(cut, self._brought.get(queue, 0))
            end = (await self._source.span(queue)).end
            async for message in self._late(queue, begin, end):
                await admin_copies.send(self._target, here, message)
                count += 1
            self._brought[queue] = end
        return count

    async def end(self, topic: str) -> None:
        """Forget that a topic came from the source.

        Raises:
            AdminError: As of `config`.
            RemotingError: The target cannot be reached, or refused.
        """
        await self.config(topic)
        with suppress(TopicNotFoundError):
            found = await admin_topics.configs(self._source, topic)
            if any(there.perm != PERM_READ for there in found.values()):
                # A rollback that was not completed had it opened.
                await admin_topics.update(self._source, topic, perm=PERM_READ)
        await admin_topics.lead_writes(self._target, topic, FINISHED)

    async def _cuts(self, topic: str, config: TopicConfig) -> list[_Cut]:
        """The source's queues of a topic; none where no broker has it now."""
        assert isinstance(config.cut_offsets, list), "it was cut over"
        try:
            found = await admin_topics.configs(self._source, topic)
        except TopicNotFoundError:
            return []
        queues, cuts = in_order(topic, found), config.cut_offsets
        # On one broker it may have got more since; on several, that moves the others.
        if len(queues) < len(cuts) or (len(found) > 1 and len(queues) > len(cuts)):
            raise AdminError(
                f"topic {topic} has {len(queues)} queues on brokers "
                f"{', '.join(sorted(found))} of the source, and had {len(cuts)} when "
                "it was cut over; allowed: as many, so no broker of it is away"
            )
        ours, _ = await self._here(topic)
        return [
            _Cut(queue, cut, MessageQueue(topic, ours, number))
            for number, (queue, cut) in enumerate(zip(queues, cuts, strict=False))
        ]

    async def _late(
        self, queue: MessageQueue, begin: int, end: int
    ) -> AsyncIterator[Message]:
        async for message in admin_copies.messages(self._source, queue, begin, end):
            if not await self._is_here(queue.topic, message):
                yield message

    async def _is_here(self, topic: str, message: Message) -> bool:
        pairs = names.parse(message.properties)
        if pairs.get(admin_copies.ORIGIN, "").startswith(f"{topic}/"):
            # A rollback that was not completed sent it there.
            return True
        key = pairs.get(names.UNIQ_KEY)
        if key is None:
            return False
        return bool(
            await self._target.query(topic, key, max_messages=1, is_unique_key=True)
        )

    async def _unread(self, group: str, cuts: list[_Cut]) -> int:
        count = 0
        for there, cut, here in cuts:
            at = await admin_offsets.committed(self._source, group, there)
            if at is None or at >= cut:
                continue
            if await admin_offsets.committed(self._target, group, here) is None:
                count += cut - at
        return count
