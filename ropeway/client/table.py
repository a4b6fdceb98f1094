"""A table: the last message of each key of a topic, as a map that follows it.

It is meant for compacted topics, of which it reads little more than what counts; any
topic with keys will do. It reads all queues from the beginning, and stores no offsets.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from ropeway.client import queue_bounds
from ropeway.client.config import ConsumerConfig
from ropeway.client.errors import RemotingError
from ropeway.client.pull_request import Puller
from ropeway.client.subscription import parse
from ropeway.client.tasks import OwnedTasks
from ropeway.gateway.wire import properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.client.instance import Instance
    from ropeway.client.message import MessageQueue, ReceivedMessage

_log = logging.getLogger(__name__)

_GROUP = "ropeway-table"
"""What pulls say, because they have to name one."""


class Table(Mapping[str, bytes]):
    """Keys to bodies, and `messages` to all of each; use it with `async with`.

    It is whole on entry: it has all that the topic had then. From there on it follows
    the topic, in the background, until it is left. A message without a body takes its
    key out. Messages of one key in several queues count by their store times.
    """

    def __init__(
        self, instance: Instance, topic: str, config: ConsumerConfig | None = None
    ) -> None:
        self.topic = topic
        self.messages: dict[str, ReceivedMessage] = {}
        """The last message of each key."""
        self._deleted: dict[str, ReceivedMessage] = {}
        self._instance = instance
        self._config = config or ConsumerConfig()
        self._puller = Puller(instance, _GROUP, self._config)
        self._tasks = OwnedTasks()
        self._next: dict[MessageQueue, int] = {}
        self._changed = asyncio.Event()

    def __getitem__(self, key: str) -> bytes:
        return self.messages[key].body

    def __iter__(self) -> Iterator[str]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    async def __aenter__(self) -> Self:
        """Read all that the topic has.

        Raises:
            TopicNotFoundError: There is no such topic.
            RemotingError: A broker cannot be reached.
        """
        self._instance.ensure_started()
        try:
            await self._follow_new_queues()
            ends = {
                queue: await queue_bounds.end_offset(self._instance, queue)
                for queue in self._next
            }
            await self.until(lambda: all(self._next[q] >= ends[q] for q in ends))
        except BaseException:
            await self._tasks.close()
            raise
        self._tasks.spawn(self._watch_route(), f"table {self.topic} route")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Return when something is so, looked at after each change."""
        while not is_so():
            self._changed.clear()
            await self._changed.wait()

    async def _follow_new_queues(self) -> None:
        route = await self._instance.routes.get(self.topic)
        for queue in route.read_queues:
            if queue not in self._next:
                offset = await queue_bounds.begin_offset(self._instance, queue)
                self._next[queue] = offset
                self._tasks.spawn(self._follow(queue), f"table {queue}")

    async def _watch_route(self) -> None:
        while True:
            await asyncio.sleep(self._config.route_interval_s)
            with contextlib.suppress(RemotingError):
                await self._follow_new_queues()

    async def _follow(self, queue: MessageQueue) -> None:
        wanted = parse(self.topic, "*", 0)
        while True:
            try:
                pulled = await self._puller.pull(queue, self._next[queue], wanted, None)
            except RemotingError as error:
                _log.warning("pull failed queue=%s error=%s", queue, error)
                await asyncio.sleep(self._config.retry_delay_s)
                continue
            for message in pulled.messages:
                self._take(message)
            self._next[queue] = pulled.next_offset
            self._changed.set()

    def _take(self, message: ReceivedMessage) -> None:
        key = message.properties.get(properties.KEYS, "")
        if not key.strip():
            return
        known = self.messages.get(key) or self._deleted.get(key)
        if (
            known is not None
            and known.queue != message.queue
            and message.store_ms < known.store_ms
        ):
            return
        if message.body:
            self._deleted.pop(key, None)
            self.messages[key] = message
        else:
            self.messages.pop(key, None)
            self._deleted[key] = message
