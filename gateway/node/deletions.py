"""Deletions of topics: what they leave in the routes, and how it is carried out.

One change of the routes decides: it takes the brokers' queues out and leaves a
`Deletion`, the tombstone. All the rest follows from that, on whichever node, and may be
done twice: brokers apply it before they serve the topic again, and what a generation
held is deleted when no broker has queues of it. docs/architecture/routing.md says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from ropeway.gateway.node import attributes, floors
from ropeway.gateway.node.names import DELETIONS_NAMESPACE
from ropeway.routing.api import Deletion, RouteError, Topic
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.routing.api import RouteStore
    from ropeway.storage.api import Log

GENERATION = "generation"
"""The setting that is above each generation of a topic that is not kept any more."""
KEPT = 1000
"""Names of deleted topics that are kept: each is some 100 bytes of the routes."""

FINISHED_S = 10.0
"""Who deletes a topic waits no longer for what is done when that is decided."""
_AGAIN_S = 1.0

_log = structlog.get_logger()

KeepForgotten = Callable[[str, Collection[int]], Awaitable[None]]


def without(old: Topic | None, brokers: Collection[str]) -> Topic | None:
    """A topic after the queues of brokers were deleted: what decides a deletion."""
    gone = [] if old is None else [one for one in brokers if one in old.route]
    if old is None or not gone:
        return old
    found = {one.generation: one for one in old.deletions}
    for broker in gone:
        number = old.generations.get(broker, 0)
        known = found.get(number)
        found[number] = Deletion(
            generation=number,
            partitions=sorted(
                {*(known.partitions if known else ()), *old.route[broker]}
            ),
            pending=sorted({*(known.pending if known else ()), broker}),
        )
    return replace(
        old,
        route={one: old.route[one] for one in old.route if one not in gone},
        generations={
            one: number for one, number in old.generations.items() if one not in gone
        },
        generation=max(old.generation, *found) + 1,
        deletions=[found[number] for number in sorted(found)],
        floors=floors.kept(old, {n for one in gone for n in old.route[one]}),
    )


def applied(old: Topic | None, broker: str) -> Topic | None:
    """A topic after a broker has applied all deletions of its queues."""
    if old is None or not is_pending(old, broker):
        return old
    return _finished(
        old,
        [
            replace(one, pending=[each for each in one.pending if each != broker])
            for one in old.deletions
        ],
    )


def emptied(old: Topic | None, generations: Collection[int]) -> Topic | None:
    """A topic after the messages of generations were deleted."""
    if old is None:
        return None
    return _finished(
        old,
        [
            replace(one, stored=one.stored and one.generation not in generations)
            for one in old.deletions
        ],
    )


def _finished(old: Topic, deletions: list[Deletion]) -> Topic:
    left = [
        one
        for one in deletions
        if one.pending or one.stored or old.is_live(one.generation)
    ]
    if old.is_deleted and not left:
        return unmade(old.name, old.generation)
    return replace(old, deletions=left)


def unmade(name: str, generation: int) -> Topic:
    """A topic of which nothing has to be known but the generation that comes next."""
    return Topic(
        name=name, read_queue_nums=0, write_queue_nums=0, generation=generation
    )


def first(routes: RouteStore) -> int:
    """The generation that topics begin with of which routes know nothing.

    Raises:
        RouteError: The setting that says so is damaged.
    """
    found = routes.settings.get((DELETIONS_NAMESPACE, GENERATION), "0")
    if not found.isdecimal():
        raise RouteError(
            f"setting {GENERATION} of {DELETIONS_NAMESPACE} is {found!r:.80}; "
            "allowed: a number from 0"
        )
    return int(found)


def is_pending(topic: Topic | None, broker: str) -> bool:
    """Whether a broker has a deletion to apply before it serves the topic."""
    return topic is not None and any(broker in one.pending for one in topic.deletions)


def outdated(topic: Topic | None, running: Collection[str]) -> list[str]:
    """Brokers that do not run, and have queues from before the last deletion."""
    if topic is None:
        return []
    return [
        broker
        for broker in topic.route
        if broker not in running and topic.generations.get(broker, 0) < topic.generation
    ]


def renewed(
    setup: Topic, old: Topic | None, plan: dict[str, list[int]], generation: int
) -> Topic:
    """A topic as it is set up, with these partitions of brokers in its route.

    Args:
        setup: All but where its queues are.
        old: What the routes have of it.
        plan: The partitions of brokers; others keep theirs.
        generation: Of those partitions.
    """
    route = {**(old.route if old else {}), **plan}
    generations = dict(old.generations) if old else {}
    if generation:
        generations |= dict.fromkeys(plan, generation)
    return replace(
        setup,
        route=route,
        generation=max(old.generation if old else 0, generation),
        generations=generations,
        deletions=old.deletions if old else [],
        moved=old.moved if old else [],
        floors=old.floors if old else {},
    )


def taken(topic: Topic | None, generation: int) -> set[int]:
    """Partitions of a generation that may still hold what was deleted."""
    return {
        number
        for one in (topic.deletions if topic else ())
        if one.generation == generation and one.stored
        for number in one.partitions
    }


async def keep_nothing(_topic: str, _generations: Collection[int]) -> None:
    """Nothing of topics is kept beside the log."""


class Deletions:
    """Carries out what this node's broker has to do of deletions.

    Args:
        broker: This node's.
        routes: Where deletions are decided and noted.
        log: Where the messages are.
        keep_forgotten: Called with a topic and generations of it that were forgotten;
            has that kept, of its offsets above all.
        lock: A topic's; nobody changes it meanwhile.
    """

    def __init__(
        self,
        broker: str,
        routes: RouteStore,
        log: Log,
        keep_forgotten: KeepForgotten,
        lock: Callable[[str], asyncio.Lock],
    ) -> None:
        self._broker = broker
        self._routes = routes
        self._log = log
        self._keep_forgotten = keep_forgotten
        self._lock = lock
        self._finishing: dict[str, asyncio.Task[None]] = {}

    def find(self, name: str) -> Topic | None:
        """What the routes have of a topic, also of a deleted one."""
        return self._routes.topics.get(name) or self._routes.deleted.get(name)

    def unfinished(self) -> Iterator[str]:
        """Topics of which this broker has something to do."""
        for topic in (*self._routes.topics.values(), *self._routes.deleted.values()):
            if is_pending(topic, self._broker) or self._dead(topic):
                yield topic.name

    def generation(self, setup: Topic, old: Topic | None) -> int:
        """Of this broker's queues of a topic, those that it has or is to get.

        Raises:
            RouteError: The setting that bounds it is damaged.
        """
        if old is not None and self._broker in old.route:
            return old.generations.get(self._broker, 0)
        if attributes.entry_format(setup.attributes) != "packed":
            # Native clients know the topic by its name alone.
            return 0
        return max(first(self._routes), old.generation if old else 0)

    async def apply(self, name: str) -> None:
        """Note that this broker knows no more of what was deleted.

        Whatever is kept of the topic in memory must be forgotten before.

        Raises:
            LogError: It is not known to be kept; do it again.
            RouteError: It is not noted; likewise.
        """
        topic = self.find(name)
        if topic is not None and is_pending(topic, self._broker):
            if self._log.numbering == "rotating":
                # This broker's alone, and made again in the same place.
                await self._log.delete(name)
            await self._keep_forgotten(
                name,
                [
                    one.generation
                    for one in topic.deletions
                    if self._broker in one.pending
                ],
            )
            await self._routes.change_topic(name, partial(applied, broker=self._broker))

    async def empty(self, name: str) -> None:
        """Delete what generations held that no broker has queues of any more.

        Raises:
            LogError: It is not deleted; do it again.
            RouteError: It is not noted; likewise.
        """
        dead = self._dead(self.find(name))
        if dead:
            for generation in dead if self._log.numbering == "dense" else ():
                await self._log.delete(name, generation)
            await self._routes.change_topic(name, partial(emptied, generations=dead))
            await self._forget_old()

    def _dead(self, topic: Topic | None) -> list[int]:
        return [
            one.generation
            for one in (topic.deletions if topic else ())
            if one.stored and not (topic and topic.is_live(one.generation))
        ]

    async def _forget_old(self) -> None:
        """Keep a bounded number of names of deleted topics.

        Whoever makes one of the others again begins above all that were used.
        """
        settled = [one for one in self._routes.deleted.values() if not one.deletions]
        if len(settled) <= KEPT:
            return
        above = max(one.generation for one in settled)

        def raised(old: str | None) -> str:
            return str(max(int(old or 0), above))

        await self._routes.change_setting(DELETIONS_NAMESPACE, GENERATION, raised)
        for one in settled:
            await self._routes.change_topic(
                one.name,
                lambda old, one=one: None if old == one else old,  # type: ignore[misc]
            )

    def finish(self, name: str) -> asyncio.Task[None]:
        """Do all that this broker has to do for a topic, as long as that takes."""
        known = self._finishing.get(name)
        if known is None:
            known = asyncio.get_running_loop().create_task(self._finish(name))
            self._finishing[name] = known
            known.add_done_callback(lambda _: self._finishing.pop(name))
        return known

    async def _finish(self, name: str) -> None:
        while True:
            try:
                async with self._lock(name):
                    await self.apply(name)
                await self.empty(name)
            except (LogError, RouteError) as error:
                _log.warning("deletion not finished", topic=name, reason=str(error))
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    async def give_up(self) -> None:
        """Leave what is not done to the broker's next leader."""
        tasks = list(self._finishing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
