"""Ropeway's own Pulsar client under test: numbered entries, and what became of them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from typing import TYPE_CHECKING, Any

import uvloop

from ropeway.storage.pulsar.client import PulsarClient
from ropeway.storage.pulsar.errors import PulsarError, PulsarUnavailableError
from ropeway.storage.pulsar.send_entry import EntryMetadata

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from ropeway.storage.pulsar.entry import Entry, Position
    from ropeway.storage.pulsar.producer import Producer
    from tests.system.pulsar import Pulsar

TIMEOUT_S = 60
WINDOW = 200
"""Entries that a flood has on their way."""


def on_uvloop(limit_s: float = 280) -> Callable[..., Callable[..., None]]:
    """Run a test on the loop that serves in earnest, for a limited time."""

    def decorate(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            async def limited() -> None:
                async with asyncio.timeout(limit_s):
                    await test(*args, **kwargs)

            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(limited())

        return run

    return decorate


@contextlib.asynccontextmanager
async def client_of(server: Pulsar | str, **more: Any) -> AsyncIterator[PulsarClient]:
    """A client of a server, or of a service URL."""
    url = server if isinstance(server, str) else server.service_url
    client = PulsarClient(url, **{"request_timeout_s": TIMEOUT_S, **more})
    try:
        yield client
    finally:
        await client.close()


TERM = 1 << 44
"""Sequence ids of a later owner of a topic are larger than all of an earlier one."""
MARKER = b"marker"


class Writer:
    """A producer that writes its numbers, one an entry, and knows their outcome.

    Its term is larger than that of all before it, and stands in its sequence ids: once
    an entry of it is stored, the broker takes those of earlier terms for repeats.
    """

    def __init__(self, producer: Producer, lost: list[PulsarError]) -> None:
        self.producer = producer
        self.term = producer.last_sequence_id // TERM + 1
        self.next = 0
        self.acknowledged: dict[int, Position | None] = {}
        self.errors: list[PulsarError] = []
        self.lost = lost
        self._changed = asyncio.Event()

    @classmethod
    async def open(cls, client: PulsarClient, topic: str) -> Writer:
        lost: list[PulsarError] = []
        return cls(await client.producer(topic, "writer", lost=lost.append), lost)

    def send(self, count: int = 1) -> None:
        for number in range(self.next, self.next + count):
            self._send(b"%d" % number, number)
        self.next += count

    def _send(self, payload: bytes, number: int) -> None:
        self.producer.send(
            [payload],
            self.term * TERM + number + 1,
            functools.partial(self._done, number),
            EntryMetadata(int(time.time() * 1000)),
        )

    @classmethod
    async def take_over(cls, client: PulsarClient, topic: str) -> Writer:
        """Be the only one who writes, and go on behind what is stored.

        What another does in the meantime is either stored before our marker, or never.
        """
        while True:
            try:
                one = await cls.open(client, topic)
            except PulsarUnavailableError:
                # A broker that is given no processor for a minute; nothing was sent.
                continue
            one._send(MARKER, -1)
            await one.settled()
            await asyncio.sleep(0)
            if -1 in one.acknowledged:
                del one.acknowledged[-1]
                one.next = len(numbers(await read_all(client, topic)))
                return one

    def _done(
        self, number: int, where: Position | None, error: PulsarError | None
    ) -> None:
        if error is None:
            self.acknowledged[number] = where
        else:
            self.errors.append(error)
        self._changed.set()

    async def until(self, count: int) -> None:
        """Return when so many entries are acknowledged."""
        while len(self.acknowledged) < count:
            self._changed.clear()
            await self._changed.wait()

    async def settled(self) -> None:
        """Return when every entry has an outcome."""
        while self.producer.pending:
            self._changed.clear()
            await self._changed.wait()

    async def flood(self, stop: asyncio.Event) -> None:
        """Keep a window of entries on their way until told to stop, or lost."""
        while not stop.is_set() and not self.lost:
            self.send(WINDOW - self.producer.pending)
            self._changed.clear()
            await self._changed.wait()


async def until(happened: Callable[[], object]) -> None:
    """Return when something is so that nobody tells of."""
    while not happened():  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.01)


async def read_all(client: PulsarClient, topic: str, **more: Any) -> list[Entry]:
    """Every entry of a topic."""
    entries: list[Entry] = []
    changed = asyncio.Event()

    def receive(entry: Entry) -> None:
        entries.append(entry)
        changed.set()

    def lose(error: PulsarError) -> None:
        raise error

    start = more.pop("start", "earliest")
    reader = await client.reader(
        topic, start, received=receive, lost=lose, permits=1 << 20, **more
    )
    last = await reader.last_position()
    while last is not None and (not entries or entries[-1].position < last):
        changed.clear()
        await changed.wait()
    await reader.close()
    return entries


def numbers(entries: list[Entry]) -> list[int]:
    """What a writer wrote into entries."""
    payloads = [bytes(entry.payload) for entry in entries]
    return [int(payload) for payload in payloads if payload != MARKER]
