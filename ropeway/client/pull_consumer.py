"""The pull consumer: its user asks for messages, and says how far it has come."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ropeway.client.config import ConsumerConfig
from ropeway.client.instance import Instance
from ropeway.client.message import ConsumeFrom, MessageQueue, ReceivedMessage
from ropeway.client.queue_client import QueueClient
from ropeway.client.queue_reader import Held, QueueReader, Setup
from ropeway.client.tasks import wait_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ropeway.client.errors import RemotingError

_log = logging.getLogger(__name__)


class _PollReader(QueueReader):
    """Keeps what was pulled until somebody polls."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.news = asyncio.Event()
        self.assigned: set[MessageQueue] | None = None
        """The queues that the user chose; None leaves that to rebalancing."""

    def arrived(self, held: Held) -> None:
        """Wake who polls. Offsets are noted when polling goes on, not here."""
        if not held.messages.is_dry:
            self.news.set()

    def chosen(self, topic: str) -> set[MessageQueue] | None:
        """The assigned queues of a topic."""
        if self.assigned is None:
            return None
        return {queue for queue in self.assigned if queue.topic == topic}

    def collect(self, limit: int) -> list[ReceivedMessage]:
        """Take what waits, from each queue in turn."""
        found: list[ReceivedMessage] = []
        for queue, held in list(self.queues.items()):
            if len(found) >= limit:
                break
            taken = held.messages.take(limit - len(found))
            if taken:
                # From here on it is the user's: only `position` remembers it.
                held.messages.finish(taken)
                found += taken
                # The queue that was served goes to the end of the line.
                self.queues[queue] = self.queues.pop(queue)
        return found

    def note_positions(self) -> None:
        """Note that everything that `collect` gave is done."""
        for queue, held in self.queues.items():
            self.offsets.update(queue, held.messages.safe_offset)


class PullConsumer(QueueClient):
    """Reads topics at its user's pace; messages are fetched ahead in the background.

    Use it with `async with`, or `start` and `close`. Either `subscribe`, and share
    the queues with the group's other consumers, or `assign` queues.

    Args:
        name_server: `host:port`, several joined by semicolons.
        group: The consumer group.
        consume_from: Where the group starts on a queue that it never read.
        auto_commit: Store how far `poll` has come, at intervals and on `close`.
            Without, only `commit` does.
        config: Times and limits.
    """

    def __init__(
        self,
        name_server: str,
        group: str,
        *,
        consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET,
        auto_commit: bool = True,
        config: ConsumerConfig | None = None,
    ) -> None:
        self._config = config or ConsumerConfig()
        super().__init__(Instance(name_server, self._config), group)
        self._auto_commit = auto_commit
        self._reader = _PollReader(
            Setup(
                instance=self._instance,
                group=group,
                config=self._config,
                offsets=self._offsets,
                consume_from=consume_from,
                is_push=False,
            )
        )
        self._is_closed = False

    def subscribe(self, topic: str, expression: str = "*") -> None:
        """Share a topic's queues with the other consumers of the group.

        Args:
            topic: Its name; it need not exist yet.
            expression: `*`, the wanted tags: `TagA || TagB`, or an `Sql` condition.

        Raises:
            ValueError: The expression names no tag, or queues are assigned.
        """
        if self._reader.assigned is not None:
            raise ValueError("queues are assigned; allowed: either that or subscribe")
        self._reader.subscribe(topic, expression)
        self._reader.rebalancer.wake()

    async def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Read these queues and no others, whoever else does.

        Raises:
            ValueError: Topics are subscribed to.
            ClientClosedError: The consumer does not run.
        """
        self._instance.ensure_started()
        if self._reader.assigned is None and self._reader.subscriptions:
            raise ValueError("topics are subscribed to; allowed: either that or assign")
        self._reader.assigned = set(queues)
        topics = {queue.topic for queue in self._reader.assigned}
        for topic in self._reader.subscriptions.keys() - topics:
            del self._reader.subscriptions[topic]
        new = topics - self._reader.subscriptions.keys()
        for topic in new:
            self._reader.subscribe(topic, "*")
        await self._reader.rebalancer.rebalance()
        if new:
            # Brokers know the group before its first offset comes.
            await self._instance.heartbeat()

    @property
    def assignment(self) -> Collection[MessageQueue]:
        """The queues that this consumer reads now."""
        return tuple(sorted(self._reader.queues))

    @property
    def failure(self) -> RemotingError | None:
        """Why a queue cannot be pulled from now; None where all can. It is retried."""
        failures = (held.failure for held in self._reader.queues.values())
        return next(filter(None, failures), None)

    async def start(self) -> None:
        """Join the group and begin to read.

        Raises:
            ClientClosedError: It was started before.
            RemotingError: No name server can be reached.
        """
        try:
            await self._reader.start()
        except BaseException:
            await self.close()
            raise

    async def poll(
        self, timeout_s: float = 1.0, max_messages: int = 32
    ) -> list[ReceivedMessage]:
        """Get the next messages; each queue's are in order.

        What earlier calls gave counts as done now, if `auto_commit` is on.

        Args:
            timeout_s: The longest to wait for the first message.
            max_messages: The most to get.

        Raises:
            ClientClosedError: The consumer does not run.
        """
        self._instance.ensure_started()
        if self._auto_commit:
            self._reader.note_positions()
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not (found := self._reader.collect(max_messages)):
            self._reader.news.clear()
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0 or not await wait_for(self._reader.news, left_s):
                break
        return found

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on from another offset; what was fetched ahead is dropped.

        Raises:
            ValueError: This consumer does not read the queue.
        """
        if queue not in self._reader.queues:
            raise ValueError(f"{queue} is not read here; allowed: one of `assignment`")
        await self._reader.restart(queue, offset)

    def position(self, queue: MessageQueue) -> int:
        """The offset that `poll` goes on from.

        Raises:
            ValueError: This consumer does not read the queue.
        """
        if queue not in self._reader.queues:
            raise ValueError(f"{queue} is not read here; allowed: one of `assignment`")
        return self._reader.queues[queue].messages.safe_offset

    async def commit(self) -> None:
        """Store at the brokers how far `poll` has come.

        Raises:
            RemotingError: A broker did not take it; others may have.
        """
        self._instance.ensure_started()
        self._reader.note_positions()
        for queue in tuple(self._reader.queues):
            await self._offsets.store(queue)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be read, sorted.

        Raises:
            TopicNotFoundError: There is no such topic.
            RemotingError: No name server answers.
        """
        self._instance.ensure_started()
        return list((await self._instance.routes.get(topic)).read_queues)

    async def close(self) -> None:
        """Stop reading, store offsets if `auto_commit` is on, leave the group."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._reader.stop_reading()
            if self._auto_commit:
                self._reader.note_positions()
                async with asyncio.timeout(self._config.close_timeout_s):
                    await self._offsets.store_all()
        except TimeoutError:
            _log.warning("offsets not stored in time client=%s", self.client_id)
        finally:
            await self._instance.close()
