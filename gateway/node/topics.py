"""Topics as this node serves them: set-up, partitions, and what sends need at hand.

The route store has the topics of all brokers. Here are those that this node's broker
has queues of. A new topic's route may be written for all brokers at once; after that,
only a broker itself changes its own part of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec
import structlog

from gateway.node import attributes, names, placing
from gateway.node.served_topic import ServedTopic
from routing.api import PERM_INHERIT, PERM_READ, PERM_WRITE, Topic
from storage.api import (
    MAX_PARTITIONS,
    LogError,
    LogUnavailableError,
    LogUnfitError,
    NoSuchPartitionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gateway.config import Config
    from routing.api import RouteStore
    from storage.api import Log, Partition
    from storage.compacting import Compaction

_log = structlog.get_logger()


class TopicError(Exception):
    """A topic cannot be made or changed so; the text says what came and is allowed."""


class _ChangedMeanwhileError(Exception):
    """A route changed on another node between a plan and its execution."""


class Topics:
    """Every topic that this node serves, kept in step with the route store."""

    def __init__(
        self,
        config: Config,
        routes: RouteStore,
        log: Log,
        delay_levels: int,
        compaction: Compaction | None = None,
    ) -> None:
        self._config = config
        self._delay_levels = delay_levels
        self._routes = routes
        self._log = log
        self._compaction = compaction
        self._serving = False
        self.follows = False
        """Whether reads are answered here while another node leads the broker."""
        self._served: dict[str, ServedTopic] = {}
        self._by_partition: dict[int, set[str]] = {}
        self._assigned = 0
        self._watchers: list[Callable[[ServedTopic], None]] = []
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._mending: set[asyncio.Task[None]] = set()
        routes.watch_topics(self._refresh)
        self.get = self._served.get
        """The topic of a name, or None."""

    async def take_over(self) -> None:
        """Serve the topics of this node's broker from now on.

        Raises:
            LogError: A topic's partitions are missing and cannot be made.
            RouteError: System topics are missing and cannot be made.
        """
        # Who uses a topic that this log cannot keep is told; other topics go on.
        await self._serve(but_for=LogUnfitError)
        await self._create_system_topics()
        self.follows = False

    async def follow(self) -> None:
        """Serve them for reading alone, while another node leads."""
        await self._serve(but_for=LogError)
        self.follows = True

    async def _serve(self, but_for: type[LogError]) -> None:
        broker = self._config.broker
        ours = {
            name: setup.route[broker]
            for name, setup in self._routes.topics.items()
            if broker in setup.route
        }
        self._assigned = sum(map(len, ours.values()))
        for name, numbers in ours.items():
            try:
                await self._create(self._routes.topics[name], numbers)
            except but_for as error:
                _log.error("topic cannot be served", topic=name, reason=str(error))
        self._serving = True
        for name in ours:
            self._refresh(name)

    async def give_up(self) -> None:
        """Serve none, because another node does."""
        self._serving = self.follows = False
        self._served.clear()
        self._by_partition.clear()

    def __iter__(self) -> Iterator[ServedTopic]:
        return iter(list(self._served.values()))

    def watch_deleted(self, deleted: Callable[[ServedTopic], None]) -> None:
        """Call `deleted` with a topic that nobody gets any more, messages and all.

        Its messages are gone by then.
        """
        self._watchers.append(deleted)

    def with_partition(self, number: int, *, retry: bool) -> list[ServedTopic]:
        """The topics that a message id may mean: those with such a partition."""
        return [
            self._served[name]
            for name in sorted(self._by_partition.get(number, ()))
            if name.startswith(names.RETRY_PREFIX) == retry
            and name not in names.NOT_FOR_READING
        ]

    async def _create_system_topics(self) -> None:
        """Make what clients and the node itself expect to be there."""
        config = self._config
        perm = PERM_READ | PERM_WRITE
        await self._ensure(names.SCHEDULE_TOPIC, self._delay_levels, perm)
        await self._ensure(names.reply_topic(config.cluster), 1, perm)
        await self._ensure(names.TIMER_TOPIC, 1, perm)
        # Admin clients ask for routes of topics named like the cluster and the
        # broker, before they create others.
        for name in (config.cluster, config.broker):
            await self._ensure(name, 1, PERM_READ | PERM_WRITE | PERM_INHERIT)
        if config.topics.auto_create:
            perm = PERM_READ | PERM_WRITE | PERM_INHERIT
            await self._ensure(
                names.AUTO_CREATE_TOPIC, config.topics.default_queues, perm
            )
        else:
            await self.delete(names.AUTO_CREATE_TOPIC)

    async def auto_create(
        self,
        name: str,
        default_topic: str,
        queues: int,
        made: Callable[[ServedTopic], None] | None = None,
    ) -> ServedTopic | None:
        """Make a topic because somebody sends to it; None where that is not allowed.

        The template topic (TBW102 from every client) must be inheritable; it bounds
        the number of queues. `made` is called where this call has made the topic.
        """
        if served := self.get(name):
            return served
        await self._routes.catch_up()
        template = self._routes.topics.get(default_topic)
        if template is None or not template.perm & PERM_INHERIT:
            return None
        wanted = max(1, min(queues, template.write_queue_nums))
        perm = template.perm & ~PERM_INHERIT
        return await self._ensure(name, wanted, perm, everywhere=True, made=made)

    async def ensure_derived(self, name: str, queues: int) -> ServedTopic:
        """Make a group's retry or dead-letter topic where it is missing."""
        return await self._ensure(name, queues, PERM_READ | PERM_WRITE)

    async def _ensure(
        self,
        name: str,
        queues: int,
        perm: int,
        *,
        everywhere: bool = False,
        made: Callable[[ServedTopic], None] | None = None,
    ) -> ServedTopic:
        served = self.get(name)
        if served is not None and served.setup.write_queue_nums >= queues:
            return served
        is_new = False

        def widened(old: Topic | None) -> Topic:
            nonlocal is_new
            is_new = old is None
            setup = old or Topic(
                name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm
            )
            return msgspec.structs.replace(
                setup,
                read_queue_nums=max(setup.read_queue_nums, queues),
                write_queue_nums=max(setup.write_queue_nums, queues),
            )

        topic = await self._change(name, widened, everywhere=everywhere)
        if is_new and made is not None:
            made(topic)
        return topic

    async def put(self, setup: Topic, *, everywhere: bool = False) -> ServedTopic:
        """Create a topic on this broker or change it; its queues keep their partitions.

        Args:
            setup: What it is to be; its route does not matter.
            everywhere: Where the topic is nowhere yet, make it on all brokers that run
                and share this log.

        Raises:
            TopicError: A number of queues or the permission is out of range.
        """
        if complaint := placing.complaint(setup):
            raise TopicError(complaint)
        return await self._change(setup.name, lambda _: setup, everywhere=everywhere)

    async def _change(
        self,
        name: str,
        wanted: Callable[[Topic | None], Topic],
        *,
        everywhere: bool = False,
    ) -> ServedTopic:
        async with self._changing.setdefault(name, asyncio.Lock()):
            while True:
                try:
                    await self._try_to_change(name, wanted, everywhere=everywhere)
                except _ChangedMeanwhileError:
                    continue
                if name not in self._served:
                    # It was so already, and is being mended since it was seen.
                    self._refresh(name)
                served = self._served.get(name)
                if served is None:
                    raise LogUnavailableError(f"topic {name} cannot be served now")
                return served

    async def _try_to_change(
        self,
        name: str,
        wanted: Callable[[Topic | None], Topic],
        *,
        everywhere: bool,
    ) -> None:
        """Make the partitions first: what the log refuses must not be in a route."""
        known = self._routes.topics.get(name)
        setup = wanted(known)
        # Partitions that go round are each log's own, and so is this broker's log.
        if everywhere and known is None and self._log.numbering == "dense":
            plan = await self._plan(setup)
        else:
            numbers = self._assign(setup, known.route if known else {})
            await self._create(setup, numbers)
            plan = {self._config.broker: numbers}

        def change(old: Topic | None) -> Topic:
            setup = wanted(old)
            route = dict(old.route) if old else {}
            if old is not None and len(plan) > 1:
                raise _ChangedMeanwhileError
            for broker, numbers in plan.items():
                theirs = route.pop(broker, [])
                if (
                    numbers[: len(theirs)] != theirs
                    or len(numbers) < placing.queues(setup)
                    or not placing.used(route).isdisjoint(numbers)
                ):
                    raise _ChangedMeanwhileError
            return msgspec.structs.replace(setup, route={**route, **plan})

        await self._routes.change_topic(name, change)

    async def _plan(self, setup: Topic) -> dict[str, list[int]]:
        """Partitions for all brokers that run: as many for each, and near ones."""
        queues = placing.queues(setup)
        brokers = placing.neighbours(
            self._routes.brokers,
            self._config.broker,
            self._config.cluster,
            MAX_PARTITIONS // queues,
        )
        numbers = range(queues * len(brokers))
        await self._create(setup, list(numbers))
        owners: dict[int, str] = {}
        if len(brokers) > 1:
            owners = await self._log.hosts(setup.name, numbers)
        return placing.share_out(numbers, brokers, owners)

    def _assign(self, setup: Topic, route: Mapping[str, list[int]]) -> list[int]:
        """Partitions for queue ids: those that they have, then free ones."""
        ours = list(route.get(self._config.broker, ()))
        missing = max(placing.queues(setup) - len(ours), 0)
        used = placing.used(route)
        if missing > MAX_PARTITIONS - len(used):
            raise TopicError(
                f"topic {setup.name} would have {len(used) + missing} queues on its "
                f"brokers together; allowed: {MAX_PARTITIONS}"
            )
        start = self._assigned if self._log.numbering == "rotating" else 0
        new = placing.free(used, start, missing)
        if new:
            self._assigned = start + (new[-1] - start) % MAX_PARTITIONS + 1
        return ours + new

    async def delete(self, name: str) -> None:
        """Delete a topic with its messages from this broker.

        Nothing happens where there is none. In a log that brokers share, the last
        broker that has queues of the topic deletes its messages: all of them.
        """
        async with self._changing.setdefault(name, asyncio.Lock()):
            known = self._routes.topics.get(name)
            if known is None or self._config.broker not in known.route:
                return
            others = self._log.numbering == "dense" and len(known.route) > 1
            if not others:
                # Its messages first: a kill in between leaves an empty topic, and not
                # one that has its old messages again when it is made anew.
                await self._log.delete(name)
            try:
                await self._routes.change_topic(name, self._without_us)
                if others and name not in self._routes.topics:
                    # They deleted it at the same moment.
                    await self._log.delete(name)
            finally:
                self._refresh(name)

    def _without_us(self, old: Topic | None) -> Topic | None:
        if old is None or self._config.broker not in old.route:
            return old
        route = dict(old.route)
        del route[self._config.broker]
        return msgspec.structs.replace(old, route=route) if route else None

    def _refresh(self, name: str) -> None:
        if not self._serving:
            return
        setup = self._routes.topics.get(name)
        numbers = setup.route.get(self._config.broker) if setup else None
        gone = self._served.pop(name, None)
        if gone is not None:
            for partition in gone.partitions:
                self._by_partition[partition.number].discard(name)
        if setup is None or numbers is None:
            if gone is not None:
                for deleted in self._watchers:
                    deleted(gone)
            return
        partitions = self._partitions(setup, numbers)
        if partitions is None:
            return
        typed = self._config.topics.check_message_types
        self._served[name] = ServedTopic(setup, partitions, typed=typed)
        for number in numbers:
            self._by_partition.setdefault(number, set()).add(name)

    def _partitions(self, setup: Topic, numbers: list[int]) -> list[Partition] | None:
        """The partitions of a topic; None where they cannot be had now."""
        name = setup.name
        if self._compaction is not None:
            compacted = attributes.is_compacted(setup.attributes)
            self._compaction.keep_last(name, compacted=compacted)
        try:
            return [self._log.partition(name, number) for number in numbers]
        except NoSuchPartitionError:
            self._mend(setup, numbers)
        except LogError as error:
            # What was compacted of it is damaged; other topics go on.
            _log.error("topic cannot be served", topic=name, reason=str(error))
        return None

    async def _create(self, setup: Topic, numbers: list[int]) -> None:
        entry_format = attributes.entry_format(setup.attributes)
        await self._log.create(setup.name, numbers, entry_format)

    def _mend(self, setup: Topic, numbers: list[int]) -> None:
        """Make partitions that are in the route and not in the log."""

        async def mend() -> None:
            try:
                await self._create(setup, numbers)
            except LogError as error:
                _log.error(
                    "topic has no partitions", topic=setup.name, reason=str(error)
                )
            else:
                self._refresh(setup.name)

        task = asyncio.get_running_loop().create_task(mend())
        self._mending.add(task)
        task.add_done_callback(self._mending.discard)
