"""Changes of a topic on this broker: its partitions in the log, then its route."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import attributes, names, placement
from ropeway.gateway.node.deletions import is_pending, renewed, taken
from ropeway.routing.api import RouteError
from ropeway.storage.api import MAX_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from ropeway.gateway.config import Config
    from ropeway.gateway.node.deletions import Deletions
    from ropeway.routing.api import RouteStore, Topic
    from ropeway.storage.api import Log


class TopicError(Exception):
    """A topic cannot be made or changed so; the text says what came and is allowed."""


class ChangedMeanwhileError(Exception):
    """A route changed on another node between a plan and its execution."""


class TopicChanges:
    """Makes and changes topics; one change of a topic at a time.

    Args:
        config: With the broker and its cluster.
        routes: Where topics are.
        log: Where their partitions are.
        deletions: Applied first.
        clear: Called with a topic and ids of queues that it is about to get here; has
            it kept that nobody has read them.
    """

    def __init__(
        self,
        config: Config,
        routes: RouteStore,
        log: Log,
        deletions: Deletions,
        clear: Callable[[str, Collection[int]], Awaitable[None]],
    ) -> None:
        self.assigned = 0
        """Where the next partition is looked for, in a log of which they go round."""
        self._made: dict[str, int] = {}
        """Which generation of each topic the log was told of."""
        self._config = config
        self._routes = routes
        self._log = log
        self._deletions = deletions
        self._clear = clear

    async def attempt(
        self,
        name: str,
        wanted: Callable[[Topic | None], Topic],
        begins: Sequence[int] = (),
        *,
        everywhere: bool,
    ) -> None:
        """Make the partitions first: what the log refuses must not be in a route.

        Args:
            name: The topic's.
            wanted: What it is to be, of what it is; its route does not matter.
            begins: At which offset each queue begins here, from queue 0 on.
            everywhere: Where it is nowhere yet, make it on all brokers that run.

        Raises:
            TopicError: There is no room for its queues, or it migrates elsewhere.
            ChangedMeanwhileError: Begin again.
            LogError: The log refuses.
            RouteError: The routes refuse.
        """
        known = self._routes.topics.get(name)
        self._refuse_if_it_migrates(known)
        setup = wanted(known)
        await self._deletions.apply(name)
        kept = self._deletions.find(name)
        generation = self._deletions.generation(setup, kept)
        if taken(kept, generation):
            # Only of a topic that keeps its name in the log may that be.
            await self._deletions.empty(name)
            kept = self._deletions.find(name)
        there = len(known.route.get(self._config.broker, ())) if known else 0
        if placement.queues(setup) > there:
            self._refuse_if_drained(name)
        # Partitions that go round are each log's own, and so is this broker's log.
        if everywhere and known is None and self._log.numbering == "dense":
            plan = await self._plan(setup, generation)
        else:
            numbers = self._assign(setup, kept, generation)
            at = dict(zip(numbers, begins, strict=False))
            await self.create(setup, numbers, generation, at)
            if known is not None and len(numbers) > there:
                # Other queues may have had these ids, and have moved since.
                await self._clear(name, range(there, len(numbers)))
            plan = {self._config.broker: numbers}

        def change(old: Topic | None) -> Topic:
            live = old is not None and not old.is_deleted
            self._refuse_if_it_migrates(old if live else None)
            setup = wanted(old if live else None)
            route = dict(old.route) if old else {}
            if (
                (live and len(plan) > 1)
                or is_pending(old, self._config.broker)
                or self._deletions.generation(setup, old) != generation
            ):
                raise ChangedMeanwhileError
            for broker, numbers in plan.items():
                theirs = route.pop(broker, [])
                if (
                    numbers[: len(theirs)] != theirs
                    or len(numbers) < placement.queues(setup)
                    or not placement.used(route).isdisjoint(numbers)
                    or not taken(old, generation).isdisjoint(numbers[len(theirs) :])
                ):
                    raise ChangedMeanwhileError
            setup = placement.with_counts_of(setup, old, self._config.broker)
            return renewed(setup, old, plan, generation)

        await self._routes.change_topic(name, change)

    def _refuse_if_it_migrates(self, known: Topic | None) -> None:
        """A topic that migrates is on one broker, which may be away."""
        broker = self._config.broker
        if known is not None and known.is_migrating and broker not in known.route:
            raise TopicError(
                f"topic {known.name} is mirrored or cut over on broker "
                f"{', '.join(known.route)}, and gets no queue on broker {broker}; "
                "allowed: topics whose migration is finished, or others"
            )

    def _refuse_if_drained(self, name: str) -> None:
        broker, cluster = self._config.broker, self._config.cluster
        if (
            placement.is_drained(self._routes, broker)
            and not names.is_derived(name)
            and not names.stays_with_broker(name, cluster, broker)
            and not names.is_system_topic(name)
        ):
            raise RouteError(
                f"broker {broker} is being drained, and topic {name} gets no queue "
                "there; look at its route again, or ask another broker"
            )

    async def _plan(self, setup: Topic, generation: int) -> dict[str, list[int]]:
        """Partitions for all brokers that run: as many for each, and near ones."""
        queues = placement.queues(setup)
        running = {
            name: nodes
            for name, nodes in self._routes.brokers.items()
            if not placement.is_drained(self._routes, name)
        }
        brokers = placement.neighbours(
            running,
            self._config.broker,
            self._config.cluster,
            MAX_PARTITIONS // queues,
        )
        numbers = range(queues * len(brokers))
        await self.create(setup, list(numbers), generation)
        owners: dict[int, str] = {}
        if len(brokers) > 1:
            owners = await self._log.hosts(setup.name, numbers)
        return placement.share_out(numbers, brokers, owners)

    def _assign(self, setup: Topic, known: Topic | None, generation: int) -> list[int]:
        """Partitions for queue ids: those that they have, then free ones."""
        route = known.route if known else {}
        ours = list(route.get(self._config.broker, ()))
        missing = max(placement.queues(setup) - len(ours), 0)
        used = placement.used(route) | taken(known, generation)
        if missing > MAX_PARTITIONS - len(used):
            raise TopicError(
                f"topic {setup.name} would have {len(used) + missing} queues on its "
                f"brokers together; allowed: {MAX_PARTITIONS}"
            )
        start = self.assigned if self._log.numbering == "rotating" else 0
        new = placement.free(used, start, missing)
        if new:
            self.assigned = start + (new[-1] - start) % MAX_PARTITIONS + 1
        return ours + new

    async def create(
        self,
        setup: Topic,
        numbers: list[int],
        generation: int,
        begins: Mapping[int, int] | None = None,
    ) -> None:
        """Have a topic's partitions of a generation in the log.

        Args:
            setup: The topic.
            numbers: Of the partitions.
            generation: Which one.
            begins: As of `storage.api.Log.create`.

        Raises:
            LogError: They are missing and cannot be made.
        """
        entry_format = attributes.entry_format(setup.attributes)
        await self._log.create(setup.name, numbers, entry_format, generation, begins)
        self._made[setup.name] = generation
        if entry_format == "packed" and self._log.numbering == "dense":
            found = self._deletions.find(setup.name)
            if (
                found
                and found.generation > generation
                and not found.is_live(generation)
            ):
                # Deleted meanwhile; perhaps before it was made.
                await self._log.delete(setup.name, generation)

    def is_made(self, setup: Topic) -> bool:
        """Whether the log was told of this broker's generation of a topic."""
        known = self._made.get(setup.name)
        return known == setup.generations.get(self._config.broker, 0)

    def forget(self, name: str) -> None:
        """Know nothing more of a topic that was deleted."""
        self._made.pop(name, None)
