"""Topics as this node serves them: set-up, partitions, and what sends need at hand.

The route store has the topics of all brokers; here are those that this node's broker
has queues of. After a topic is made, only a broker changes its own part of the route.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec
import structlog

from ropeway.common.tasks import Tasks
from ropeway.gateway.node import attributes, names, placement
from ropeway.gateway.node.by_partition import ByPartition
from ropeway.gateway.node.deletions import (
    FINISHED_S,
    Deletions,
    KeepForgotten,
    is_pending,
    keep_nothing,
    outdated,
    without,
)
from ropeway.gateway.node.queue_transfers import MovingQueues
from ropeway.gateway.node.served_topic import ServedTopic
from ropeway.gateway.node.system_topics import system_topics
from ropeway.gateway.node.time_slices import slices
from ropeway.gateway.node.topic_changes import (
    ChangedMeanwhileError,
    TopicChanges,
    TopicError,
)
from ropeway.routing.api import PERM_INHERIT, PERM_READ, PERM_WRITE, Topic
from ropeway.storage.api import (
    LogError,
    LogUnavailableError,
    LogUnfitError,
    NoSuchPartitionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ropeway.gateway.config import Config
    from ropeway.gateway.node.arrivals import Arrivals
    from ropeway.routing.api import RouteStore
    from ropeway.storage.api import Log, Partition
    from ropeway.storage.compaction_api import Compaction

_log = structlog.get_logger()


class Topics:
    """Every topic that this node serves, kept in step with the route store."""

    def __init__(
        self,
        config: Config,
        routes: RouteStore,
        log: Log,
        compaction: Compaction | None = None,
        keep_forgotten: KeepForgotten | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        self._config = config
        self._routes = routes
        self._log = log
        self._compaction = compaction
        self._serving = False
        self.follows = False
        """Whether reads are answered here while another node leads the broker."""
        self._served: dict[str, ServedTopic] = {}
        self._by_partition = ByPartition()
        self.with_partition = self._by_partition.find
        self._changed_early: set[str] = set()
        """What routes have told of while this node does not serve yet."""
        self._watchers: list[Callable[[ServedTopic], None]] = []
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._mending = Tasks()
        self._deletions = Deletions(
            config.broker, routes, log, keep_forgotten or keep_nothing, self.lock
        )
        self.moving = MovingQueues(config.broker, arrivals)
        cleared = self.moving.cleared
        self.changes = TopicChanges(config, routes, log, self._deletions, cleared)
        routes.watch_topics(self._refresh)
        self.get = self._served.get
        """The topic of a name, or None."""

    async def take_over(self) -> None:
        """Serve the topics of this node's broker from now on.

        Raises:
            LogError: A topic's partitions are missing and cannot be made.
            RouteError: System topics are missing and cannot be made.
        """
        # Who is told forgets what the broker keeps: its leader's to do.
        self.follows = False
        self.moving.load()
        await self.moving.come_back(self._routes)
        for name in self._deletions.unfinished():
            if self._is_pending(name):
                self._tell(self._of_deleted(name))
                await self._deletions.apply(name)
        # Who uses a topic that this log cannot keep is told; other topics go on.
        await self._serve(but_for=LogUnfitError)
        await self._create_system_topics()
        for name in self._deletions.unfinished():
            self._deletions.finish(name)

    async def follow(self) -> None:
        """Serve them for reading alone, while another node leads."""
        await self._serve(but_for=LogError)
        self.follows = True

    async def _serve(self, but_for: type[LogError]) -> None:
        broker = self._config.broker
        ours = {
            name: setup.route[broker]
            for name, setup in self._routes.topics.items()
            if broker in setup.route and not self._is_pending(name)
        }
        self.changes.assigned = sum(map(len, ours.values()))
        self._changed_early.clear()
        for some in slices(ours):
            for name in some:
                if not self._stays(name, ours[name]):
                    await self._create(name, ours[name], but_for)
                    self._refresh_now(name)
            await asyncio.sleep(0)
        self._serving = True
        for name in list(self._changed_early):
            self._refresh_now(name)

    def _stays(self, name: str, numbers: list[int]) -> bool:
        """Whether a topic is served as it was for reading alone; of most that is so."""
        served = self._served.get(name)
        if served is None or served.source is not self._routes.topics.get(name):
            return False
        return served.partitions == self._partitions(served.source, numbers)

    async def _create(self, name: str, ours: list[int], but: type[LogError]) -> None:
        if (setup := self._routes.topics.get(name)) is None:
            return
        generation = setup.generations.get(self._config.broker, 0)
        try:
            await self.changes.create(setup, ours, generation)
        except but as error:
            _log.error("topic cannot be served", topic=name, reason=str(error))

    async def give_up(self) -> None:
        """Serve none, because another node does."""
        self._serving = self.follows = False
        await self._deletions.give_up()
        self._served.clear()
        self._by_partition.clear()

    def lock(self, name: str) -> asyncio.Lock:
        """Held while a topic is changed, or a deletion of it applied."""
        return self._changing.setdefault(name, asyncio.Lock())

    def __iter__(self) -> Iterator[ServedTopic]:
        return iter(list(self._served.values()))

    def watch_deleted(self, deleted: Callable[[ServedTopic], None]) -> None:
        """Call `deleted` with a topic that nobody gets any more, messages and all.

        Its messages may still be there for a moment. Where it was deleted in this
        node's absence, it is told without partitions.
        """
        self._watchers.append(deleted)

    def _tell(self, gone: ServedTopic) -> None:
        self.changes.forget(gone.name)
        for deleted in self._watchers:
            deleted(gone)

    def _is_pending(self, name: str) -> bool:
        return is_pending(self._deletions.find(name), self._config.broker)

    def _of_deleted(self, name: str) -> ServedTopic:
        setup = self._deletions.find(name)
        assert setup is not None, "a deletion is pending"
        return ServedTopic(setup, [])

    async def _create_system_topics(self) -> None:
        """Make what clients and the node itself expect to be there."""
        for name, queues, perm in system_topics(self._config):
            await self._ensure(name, queues, perm)
        if not self._config.auto_create:
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

        topic = await self.change(name, widened, everywhere=everywhere)
        if is_new and made is not None:
            made(topic)
        return topic

    async def put(self, setup: Topic, *, everywhere: bool = False) -> ServedTopic:
        """Create a topic on this broker or change it; its queues keep their partitions.

        Args:
            setup: What it is to be; its route does not matter.
            everywhere: Where it is nowhere yet, make it on all brokers of this log.

        Raises:
            TopicError: A number of queues or the permission is out of range.
        """
        if complaint := placement.complaint(setup):
            raise TopicError(complaint)
        return await self.change(setup.name, lambda _: setup, everywhere=everywhere)

    async def change(
        self,
        name: str,
        wanted: Callable[[Topic | None], Topic],
        begins: Sequence[int] = (),
        *,
        everywhere: bool = False,
    ) -> ServedTopic:
        """Create a topic or change it; see `TopicChanges.attempt`."""
        attempt = self.changes.attempt
        async with self.lock(name):
            while True:
                try:
                    await attempt(name, wanted, begins, everywhere=everywhere)
                except ChangedMeanwhileError:
                    continue
                if name not in self._served:
                    # It was so already, and is being mended since it was seen.
                    self._refresh(name)
                if served := self._served.get(name):
                    return served
                raise LogUnavailableError(f"topic {name} cannot be served now")

    async def delete(self, name: str) -> None:
        """Delete this broker's queues of a topic with their messages.

        Nothing happens where there are none. When this returns, it is decided for good;
        what is not done after a few seconds is done later.

        Raises:
            RouteError: Nothing was deleted; or nobody knows.
        """
        await self._delete(name, lambda _: [self._config.broker])

    async def delete_outdated(self, name: str) -> None:
        """Delete queues that others deleted theirs of, of brokers that do not run.

        Raises:
            RouteError: As of `delete`.
        """
        await self._delete(name, lambda old: outdated(old, self._routes.brokers))

    async def _delete(
        self, name: str, brokers: Callable[[Topic | None], Collection[str]]
    ) -> None:
        try:
            await self._routes.change_topic(
                name, lambda old: without(old, brokers(old))
            )
        finally:
            if name in self._served:
                self._refresh(name)
        if self._serving and not self.follows:
            await asyncio.wait([self._deletions.finish(name)], timeout=FINISHED_S)

    def _refresh(self, name: str) -> None:
        if self._serving:
            self._refresh_now(name)
        else:
            self._changed_early.add(name)

    def _refresh_now(self, name: str) -> None:
        setup = self._deletions.find(name)
        numbers = self.moving.numbers(setup)
        pending = is_pending(setup, self._config.broker)
        gone = self._served.pop(name, None)
        if gone is not None:
            self._by_partition.discard(gone)
        if pending and not self.follows:
            self._tell(gone or self._of_deleted(name))
            self._deletions.finish(name)
        elif gone is not None and (pending or self.moving.is_gone(gone, setup)):
            self._tell(gone)
        if setup is None or pending:
            return
        self.moving.leave(gone, numbers or ())
        if numbers is None or (partitions := self._partitions(setup, numbers)) is None:
            return
        typed = self._config.topics.check_message_types
        self._served[name] = ServedTopic(setup, partitions, typed=typed)
        self._by_partition.add(self._served[name])

    @contextmanager
    def withdrawn(self, name: str, number: int) -> Iterator[None]:
        """Serve a topic without its last queue, which another broker is to get.

        After that, by what the routes say.
        """
        self.moving.withdrawn[name] = number
        self._refresh(name)
        try:
            yield
        finally:
            del self.moving.withdrawn[name]
            self._refresh(name)

    def _partitions(self, setup: Topic, numbers: list[int]) -> list[Partition] | None:
        """The partitions of a topic; None where they cannot be had now."""
        if not (self.follows or self.moving.settle(setup, numbers)):
            return None
        if not self.changes.is_made(setup):
            # What the log has of that name is of another generation, or unknown.
            self._mend(setup, numbers)
            return None
        if self._compaction is not None:
            compacted = attributes.is_compacted(setup.attributes)
            self._compaction.keep_last(setup.name, compacted=compacted)
        try:
            return self.moving.partitions(setup, numbers, self._log)
        except NoSuchPartitionError:
            self._mend(setup, numbers)
        except LogError as error:
            # What was compacted of it is damaged; other topics go on.
            _log.error("topic cannot be served", topic=setup.name, reason=str(error))
        return None

    def _mend(self, setup: Topic, numbers: list[int]) -> None:
        """Make partitions that are in the route and not in the log."""

        async def mend() -> None:
            try:
                async with self.lock(setup.name):
                    if self._deletions.find(setup.name) == setup:
                        generation = setup.generations.get(self._config.broker, 0)
                        await self.changes.create(setup, numbers, generation)
            except LogError as error:
                reason = str(error)
                _log.error("topic has no partitions", topic=setup.name, reason=reason)
            else:
                self._refresh(setup.name)

        self._mending.start(mend())
