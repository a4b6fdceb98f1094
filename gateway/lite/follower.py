"""Follows the queues of topics with lite topics, and notes whose messages they are.

The queues are the truth. What is noted is read from them, in their order; so a message
counts however it was stored, and a lost index is made again. One task follows them all:
a queue that grows is looked at once for all that has come.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.lite import names
from ropeway.gateway.lite.catalogue import Catalogue
from ropeway.gateway.lite.store import Noted, Store
from ropeway.gateway.node import backoff
from ropeway.gateway.node.backoff import Backoff
from ropeway.gateway.node.derived_store import (
    Checkpoint,
    checkpoint_after,
    keep,
    status_of,
)
from ropeway.gateway.node.fold import next_chunk, records_in
from ropeway.gateway.node.index_thread import IndexLostError, IndexThread
from ropeway.gateway.wire import message
from ropeway.storage.api import LogError, NoSuchPartitionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.topics import Topics
    from ropeway.gateway.wire.commands.nodes import DerivedStoreStatus
    from ropeway.storage.api import Chunk, Log, Partition

log = structlog.get_logger(__name__)

_OFFSET_AT = 20
_OFFSET_END = 28


class _Queue:
    """A queue that is followed."""

    __slots__ = ("grown", "number", "parent", "partition", "read_to")

    def __init__(self, parent: Parent, number: int, partition: Partition) -> None:
        self.parent = parent
        self.number = number
        self.partition = partition
        self.read_to: int | None = None
        """What is noted next; None before it was looked where that is."""
        self.grown: Callable[[], None]


class Parent:
    """A topic whose lite topics are known.

    Args:
        name: The topic's.
    """

    __slots__ = ("catalogue", "name", "queues")

    def __init__(self, name: str) -> None:
        self.name = name
        self.catalogue = Catalogue()
        self.queues: list[_Queue] = []

    @property
    def firsts(self) -> list[int]:
        """The first message that is there, of each queue."""
        return [queue.partition.first for queue in self.queues]

    def has(self, lite: str, queue_id: int) -> int:
        """One past a lite topic's last message in a queue; 0 where it has none."""
        topic = self.catalogue.get(lite)
        return topic.ends.get(queue_id, 0) if topic is not None else 0


class Follower:
    """Follows the queues of all parents.

    Args:
        topics: Where they are.
        message_log: What opens them.
        directory: Of the index.
        came: Called with a parent and its lite topics that have new messages.
    """

    def __init__(
        self,
        topics: Topics,
        message_log: Log,
        directory: Path,
        came: Callable[[str, Iterable[str]], None],
    ) -> None:
        self._topics = topics
        self._log = message_log
        self._came = came
        self.parents: dict[str, Parent] = {}
        self._grown: dict[_Queue, None] = {}
        self._wake = asyncio.Event()
        self.store = IndexThread[Store]("lite topics", Store, directory, self._wake.set)
        self._backoff = Backoff("lite topics are not followed", message_log)
        self._open = False

    @property
    def is_open(self) -> bool:
        """Whether the index is open, and the parents are followed."""
        return self._open

    async def run(self) -> None:
        """Follow for ever."""
        await keep(self.store.name, self._follow_all, self._backoff)

    async def _follow_all(self, anew: bool) -> None:
        try:
            await self.store.open(anew=anew)
            self._open = True
            for topic in self._topics:
                if topic.of_lites:
                    self.follow(topic)
            await self._keep_up()
        finally:
            self._stop()

    async def close(self) -> None:
        """Follow nothing any more."""
        self._stop()
        await self.store.close()

    def _stop(self) -> None:
        self._open = False
        for name in list(self.parents):
            self._leave(name)

    def _leave(self, name: str) -> None:
        parent = self.parents.pop(name, None)
        for queue in parent.queues if parent is not None else ():
            queue.partition.unwatch(queue.grown)
            self._grown.pop(queue, None)

    def follow(self, topic: ServedTopic) -> Parent | None:
        """The lite topics of a topic, which is followed from now on.

        None where the index is not open.
        """
        parent = self.parents.get(topic.name)
        if parent is None:
            if not self._open:
                return None
            parent = self.parents[topic.name] = Parent(topic.name)
        for number in range(len(parent.queues), len(topic.partitions)):
            queue = _Queue(parent, number, topic.partitions[number])
            queue.grown = partial(self._look_at, queue)
            parent.queues.append(queue)
            queue.partition.watch(queue.grown)
            self._look_at(queue)
        return parent

    def names(self, parent: str) -> list[str]:
        """The lite topics of a parent that have messages, as far as they are known."""
        found = self.parents.get(parent)
        return found.catalogue.names() if found is not None else []

    def is_behind(self, parent: Parent) -> bool:
        """Whether a queue has messages that are not noted."""
        return any(
            queue.read_to is None or queue.read_to < queue.partition.end
            for queue in parent.queues
        )

    def status(self) -> DerivedStoreStatus:
        """How the store stands."""
        queues = (queue for parent in self.parents.values() for queue in parent.queues)
        lag = sum(
            queue.partition.end - max(queue.read_to or 0, queue.partition.first)
            for queue in queues
        )
        return status_of(self.store, lag)

    async def forget(self, name: str) -> None:
        """A topic is gone."""
        self._leave(name)
        if self._open:
            await self.store.run(Store.forget, name)

    def _look_at(self, queue: _Queue) -> None:
        self._grown[queue] = None
        self._wake.set()

    async def _keep_up(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self.store.lost.is_set():
                raise IndexLostError("it could not be read")
            for queue in list(self._grown):
                if self._grown.pop(queue, queue) is None:
                    await self._read_on(queue)

    async def _read_on(self, queue: _Queue) -> None:
        loop = asyncio.get_running_loop()
        try:
            if queue.read_to is None:
                await self._log.ready(queue.parent.name, (queue.partition.number,))
                await self._begin(queue)
            assert queue.read_to is not None, "it was just found"
            if queue.read_to < queue.partition.end:
                await self._note(queue, queue.read_to)
                # The others first.
                self._look_at(queue)
            elif self.store.rebuild.is_under_way and not any(
                map(self.is_behind, self.parents.values())
            ):
                self.store.rebuild.end()
        except NoSuchPartitionError:
            self._leave(queue.parent.name)
        except LogError as error:
            log.warning(
                "lite topics are behind",
                topic=queue.parent.name,
                queue_id=queue.number,
                reason=str(error),
            )
            loop.call_later(backoff.RETRY_S, self._look_at, queue)
        except IndexLostError:
            raise
        except Exception:  # the other queues go on
            log.exception(
                "lite topics are behind",
                topic=queue.parent.name,
                queue_id=queue.number,
            )
            loop.call_later(backoff.UNFORESEEN_S, self._look_at, queue)

    async def _begin(self, queue: _Queue) -> None:
        """Where to go on in a queue, if what is known of it is still so."""
        parent, partition = queue.parent, queue.partition
        known = await self.store.run(Store.checkpoint_of, parent.name, queue.number)
        if known is not None and not await known.fits(partition, outlived=True):
            log.warning("lite topics do not fit the log", topic=parent.name)
            await self.store.run(Store.forget, parent.name)
            parent.catalogue = Catalogue()
            for other in parent.queues:
                if other.read_to is not None:
                    other.read_to = other.partition.first
                    self._look_at(other)
            known = None
        if known is None:
            queue.read_to = partition.first
            if partition.first < partition.end:
                self.store.rebuild.begin()
            return
        if not len(parent.catalogue):
            topics = await self.store.run(Store.topics, parent.name)
            parent.catalogue = Catalogue(topics)
        queue.read_to = known.next_offset
        self._came(parent.name, parent.catalogue.names())

    async def _note(self, queue: _Queue, read_to: int) -> None:
        parent, partition = queue.parent, queue.partition
        chunk = await next_chunk(partition, read_to)
        found, checkpoint = _messages_in(chunk)
        touched = parent.catalogue.note(queue.number, found)
        if checkpoint is not None:
            await self.store.run(
                Store.note,
                parent.name,
                queue.number,
                found,
                parent.catalogue.known(touched),
                checkpoint,
            )
        queue.read_to = chunk.next_offset
        if touched:
            self._came(parent.name, touched)


def _messages_in(chunk: Chunk) -> tuple[list[Noted], Checkpoint | None]:
    """The messages of lite topics that were read, and the checkpoint behind them.

    There is none where nothing was read: all records there are lost.
    """
    found = []
    last: memoryview | None = None
    for record in records_in(chunk):
        last = record
        lite = names.of_pairs(message.view_pairs(record))
        if lite is not None:
            offset = int.from_bytes(record[_OFFSET_AT:_OFFSET_END], "big")
            found.append(Noted(lite, offset, message.view_store_ms(record)))
    if last is None:
        return found, None
    return found, checkpoint_after(last, chunk.next_offset)
