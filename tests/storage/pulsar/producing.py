"""A producer under test, on a broker that does what it is told."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.send_entry import EntryMetadata
from tests.storage.pulsar.broker import TOPIC, FakeBroker, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.storage.pulsar.entry import Position
    from ropeway.storage.pulsar.errors import PulsarError
    from ropeway.storage.pulsar.producer import Producer

TIMEOUT_S = 60


class Sending:
    """A producer on a broker that does what it is told, and what came of each entry."""

    def __init__(self, broker: FakeBroker, client: PulsarClient) -> None:
        self.broker = broker
        self.client = client
        self.done: list[tuple[int, Position | None, PulsarError | None]] = []
        self.lost: list[PulsarError] = []
        self.producer: Producer
        self._changed = asyncio.Event()

    async def open(self, **more: Any) -> Producer:
        self.producer = await self.client.producer(TOPIC, "w", lost=self.lose, **more)
        return self.producer

    def lose(self, error: PulsarError) -> None:
        self.lost.append(error)
        self._changed.set()

    def send(self, *numbers: int) -> None:
        for number in numbers:

            def done(where, error, number=number):
                self.done.append((number, where, error))
                self._changed.set()

            self.producer.send([b"x" * 10], number, done, EntryMetadata(1))

    async def loss(self) -> PulsarError:
        while not self.lost:
            self._changed.clear()
            await self._changed.wait()
        return self.lost[0]

    async def finished(self, count: int) -> list[int]:
        while len(self.done) < count:
            self._changed.clear()
            await self._changed.wait()
        return [number for number, _, _ in self.done]


@contextlib.asynccontextmanager
async def sending(timeout_s: float = TIMEOUT_S) -> AsyncIterator[Sending]:
    async with running() as broker:
        client = PulsarClient(broker.url, request_timeout_s=timeout_s)
        try:
            yield Sending(broker, client)
        finally:
            await client.close()
