"""A timer on a log of its own, with a clock that tests set."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ropeway.gateway.node import names, record_builder
from ropeway.gateway.node.broker_context import BrokerContext
from ropeway.gateway.node.timer import pending_timers
from ropeway.gateway.node.timer.delivery import Delivery
from ropeway.gateway.node.timer.timer import Timer
from ropeway.gateway.node.topics import Topics
from ropeway.gateway.wire import message, properties
from ropeway.routing.api import Topic
from ropeway.routing.embedded import EmbeddedRoutes
from ropeway.storage.file import FileLogSettings, open_log, open_offsets
from tests.remoting import config, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from ropeway.gateway.wire.message import Message
    from ropeway.storage.api import LogError

START_MS = 1_800_000_000_000
WINDOW_MS = 86_400_000
HOST = message.pack_host("127.0.0.1", 1)


class Clock:
    """What time it is, because a test says so."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


class Rig:
    """A log with a topic `orders` of two queues, and the timer on it."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self.directory = directory
        self.index = directory / "timer"
        self.clock = clock
        settings = FileLogSettings(segment_bytes=1 << 20, retention_ms=None)
        self.log = open_log(directory / "log", settings)
        self.offsets = open_offsets(directory)
        self.routes = EmbeddedRoutes(directory / "routes.db")
        self.topics = Topics(config(directory), self.routes, self.log)
        broker = BrokerContext(
            *("broker-0", "cluster", self.routes, self.topics),
            *(self.offsets, self.log, lambda: HOST, clock),
        )
        self.delivery = Delivery(broker)
        self.timer = Timer(
            broker,
            self.delivery,
            self.index,
            WINDOW_MS,
            10 * 365 * WINDOW_MS,
        )

    async def open(self) -> None:
        await self.topics.take_over()
        await self.make("orders")
        await self.timer.take_over()

    async def make(self, topic: str) -> None:
        setup = Topic(name=topic, read_queue_nums=2, write_queue_nums=2, perm=6)
        await self.topics.put(setup)

    async def close(self) -> None:
        await self.timer.give_up()
        await self.offsets.close()
        await self.log.close()
        await self.routes.close()

    # What clients ask for.

    def send(
        self, body: str, due_ms: int, topic: str = "orders", queue_id: int = 0
    ) -> None:
        """Have a message wait; its unique key is its body."""
        pairs = {properties.UNIQ_KEY: body, properties.TAGS: "t"}
        text = pending_timers.message_text(
            due_ms, topic, queue_id, pairs, properties.dump(pairs)
        )
        self._append(text, body)

    def recall(self, body: str, due_ms: int, topic: str = "orders") -> None:
        self._append(pending_timers.recall_text(due_ms, topic, body), "0")

    def _append(self, text: str, body: str) -> None:
        topic = self.timer.topic
        partition = topic.partitions[0]
        record = record_builder.make_record(
            topic,
            0,
            partition.next_offset,
            self.clock(),
            record_builder.NewMessage(
                body=body.encode(),
                properties=text,
                flag=7,
                born_ms=1,
                born_host=HOST,
                store_host=HOST,
            ),
        )
        partition.append([record], self.clock(), _must)

    # What has come of it.

    async def stored(self, topic: str = "orders", queue_id: int = 0) -> list[Message]:
        """What is in a queue."""
        partition = self.topics.get(topic).partitions[queue_id]
        found: list[Message] = []
        while len(found) < partition.end:
            chunk = await partition.read(len(found), 1000, 1 << 20)
            found += [
                message.decode(one)
                for piece in chunk.data
                for one in message.split(piece)
            ]
        return found

    async def bodies(self, topic: str = "orders", queue_id: int = 0) -> list[str]:
        return [one.body.decode() for one in await self.stored(topic, queue_id)]

    async def at(self, now_ms: int) -> None:
        """Let it be that time, and the timer do what is to be done then."""
        await self.settled()
        self.clock.now_ms = now_ms
        await self.settled()

    async def settled(self) -> None:
        """Wait until the timer has nothing to do at this time."""
        await self.log.flush()
        self.timer.wake()
        read = self.timer.topic.partitions[0]
        await until(lambda: read.end == read.next_offset)
        rounds = self.timer.idle_rounds

        def looked_twice() -> bool:
            self.timer.wake()
            return self.timer.idle_rounds > rounds + 1

        await until(looked_twice)

    def waits(self) -> int:
        """Records in the system topic."""
        return self.topics.get(names.TIMER_TOPIC).partitions[0].end


class Refusing:
    """A partition whose appends fail."""

    def __init__(self, true: object, error: Exception) -> None:
        self._true = true
        self._error = error
        self.refused = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._true, name)

    def append(self, _records: object, _store_ms: int, done: Callable) -> None:
        self.refused += 1
        if self.refused % 2:
            raise self._error
        asyncio.get_running_loop().call_soon(done, -1, self._error)


def _must(_offset: int, error: LogError | None) -> None:
    assert error is None


@asynccontextmanager
async def rigged(directory: Path, clock: Clock | None = None) -> AsyncIterator[Rig]:
    """A rig that runs from entry to exit."""
    rig = Rig(directory, clock or Clock())
    await rig.open()
    try:
        yield rig
    finally:
        await rig.close()
