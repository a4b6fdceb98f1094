"""Transactions of a running node, in a time that tests make pass."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ropeway.common.clock import now_ms
from ropeway.gateway.config import TransactionsConfig
from ropeway.gateway.node.broker_context import BrokerContext
from ropeway.gateway.node.record_builder import NewMessage
from ropeway.gateway.node.transactions import Producers, Transactions, records
from ropeway.gateway.node.transactions import half_message as half_messages
from ropeway.gateway.wire import message, properties
from ropeway.storage.api import LogUnavailableError
from tests.remoting import beat, running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.gateway.listener import Listener
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.wire.commands.transactions import CheckTransactionState
    from ropeway.storage.api import LogError
    from tests.remoting import Remoting

GROUP = "producers"
HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
ENDS = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
HOST = message.pack_host("127.0.0.1", 10911)


class Clock:
    """Time that stands still until it is moved on."""

    def __init__(self) -> None:
        self.ms = now_ms()
        self._asleep: list[tuple[float, asyncio.Future[None]]] = []
        self._dead: list[tuple[float, asyncio.Future[None]]] = []

    def __call__(self) -> int:
        return self.ms

    async def pause(self, seconds: float) -> None:
        awake = asyncio.get_running_loop().create_future()
        self._asleep.append((self.ms + seconds * 1000, awake))
        await awake

    async def advance(self, ms: int) -> None:
        """Let time pass, and whoever sleeps do what it then does."""
        await self._all_sleep()
        self.ms += ms
        asleep, self._asleep = self._asleep, []
        for until_ms, awake in asleep:
            if until_ms <= self.ms and not awake.done():
                awake.set_result(None)
            elif not awake.done():
                self._asleep.append((until_ms, awake))
        await self._all_sleep()

    def forget(self) -> None:
        """Whoever sleeps does not wake up."""
        self._dead += self._asleep
        self._asleep = []

    async def _all_sleep(self) -> None:
        await until(lambda: any(not awake.done() for _, awake in self._asleep))


class Reach:
    """The topics of a node, as long as it lives: a killed one reaches nothing."""

    def __init__(self, app: App) -> None:
        self._topics = app.node.topics
        self.alive = True
        self.hidden = ""
        """A topic that it does not reach."""

    def get(self, name: str) -> ServedTopic | None:
        return self._topics.get(name) if self.alive and name != self.hidden else None

    async def ensure_derived(self, name: str, queues: int) -> ServedTopic:
        return await self._topics.ensure_derived(name, queues)


class Place:
    """A node, and the transactions that a test begins and kills.

    Args:
        app: The node; its own transactions are given up.
        client: A connection to it.
        settings: Of the transactions.
    """

    def __init__(self, app: App, client: Remoting, **settings: Any) -> None:
        self.app = app
        self.client = client
        self.clock = Clock()
        self.config = TransactionsConfig(**settings)
        self.links: list[object] = []
        """Who was asked."""
        self.asked: list[CheckTransactionState] = []
        self.shown: list[message.Message] = []
        self.service: Transactions
        self.reach: Reach

    @property
    def listener(self) -> Listener:
        """Where the node listens."""
        return self.app.server.listeners[0]

    async def begin(self) -> None:
        """Take over, as after a start."""
        node = self.app.node
        self.reach = Reach(self.app)
        self.service = Transactions(
            BrokerContext(
                *("broker-0", "cluster", node.routes, self.reach),
                *(node.offsets, node.log, lambda: HOST, self.clock),
            ),
            self.config,
            node.delays,
            Producers(node.clients, self._ask, None),
            self.clock.pause,
        )
        await self.service.take_over()
        await self.service.known()

    def _ask(self, link: object, question: CheckTransactionState, shown: bytes) -> None:
        self.links.append(link)
        self.asked.append(question)
        self.shown.append(message.decode(shown))

    def kill(self) -> None:
        """The node dies: what it would do now, it does not do."""
        self.reach.alive = False
        self.clock.forget()

    async def send_half(
        self,
        body: bytes = b"x",
        *,
        topic: str = "orders",
        born_host: bytes = HOST,
        **pairs: str,
    ) -> int:
        """Store a half message; its offset."""
        half_topic = await self.service.make_topics()
        given = {
            properties.UNIQ_KEY: f"{body.hex():0>32}",
            properties.PRODUCER_GROUP: GROUP,
            **pairs,
        }
        text = properties.dump(given)
        key = given[properties.UNIQ_KEY]
        partition = half_topic.partitions[0]
        store_ms = self.clock.ms
        record = records.half_record(
            half_topic,
            partition.next_offset,
            store_ms,
            NewMessage(
                body=body,
                properties=records.half_text(text, given, topic, 0, GROUP, key),
                born_ms=store_ms,
                born_host=born_host,
                store_host=HOST,
            ),
        )
        stored = asyncio.get_running_loop().create_future()
        partition.append([record], store_ms, lambda at, _: stored.set_result(at))
        offset = await stored
        self.service.opened(half_messages.read(record.data))
        return offset

    async def end(self, offset: int, how: Any) -> bool:
        """End a transaction; whether it was not ended so before."""
        done = asyncio.get_running_loop().create_future()
        half = await self.service.find(offset)
        if not self.service.end(half, how, 77, done.set_result):
            return False
        error = await done
        if error is not None:
            raise error
        return True

    async def bodies(self, topic: str = "orders") -> list[bytes]:
        """What consumers find."""
        answer = await self.client.ask(pulling(topic))
        return [one.body for one in answer.messages()]

    def partition(self, topic: str) -> Any:
        served = self.app.node.topics.get(topic)
        assert served is not None
        return served.partitions[0]

    async def written(self, count: int) -> None:
        """Wait until so many records of ended transactions are stored."""
        await until(lambda: self.partition(ENDS).end >= count)


@asynccontextmanager
async def place(path: Path, **settings: Any) -> AsyncIterator[Place]:
    """A place with the topic `orders`, whose producers are connected."""
    async with running(path) as (app, client):
        await app.node.transactions.give_up()
        await client.ask(sending("orders"), b"first")
        made = Place(app, client, **settings)
        await beat(client, "me", producers=(GROUP,))
        await made.begin()
        try:
            yield made
        finally:
            await made.service.give_up()


class Slow:
    """A partition that answers appends when it is told to."""

    def __init__(self, true: Any) -> None:
        self._true = true
        self.waiting: list[Callable[[int, LogError | None], None]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._true, name)

    def append(self, _records: Any, _store_ms: int, done: Any) -> None:
        self.waiting.append(done)


class Refusing(Slow):
    """A partition that refuses appends, at once or later."""

    def __init__(self, true: Any, *, at_once: bool) -> None:
        super().__init__(true)
        self._at_once = at_once

    def append(self, _records: Any, _store_ms: int, done: Any) -> None:
        error = LogUnavailableError("disk full")
        if self._at_once:
            raise error
        asyncio.get_running_loop().call_soon(done, -1, error)
