"""A node in this process, whose clients have no sockets, and counts of what it does.

Requests are handed to connections as the network would, and answers are kept. What is
counted is up to callgrind, which `counter.c` tells when.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import struct
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import uvloop

from benchmarks import grpc, http2
from benchmarks.pop_pieces import Caught
from benchmarks.processing import TICKS, send
from ropeway.acl.api import Channel, Source
from ropeway.gateway.connection import Connection
from ropeway.gateway.wire.frame import PREFIX, FrameReader, decode_envelope
from ropeway.gateway.write_buffer import Outbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from ropeway.gateway.app import App
    from ropeway.gateway.wire.frame import Buffer, Envelope

CLIENTS = 16
LONGER = 100


class SlowTimers(uvloop.Loop):
    """An event loop whose timers come later, by a factor."""

    factor = 1

    def call_later(self, delay: Any, callback: Any, *args: Any, **more: Any) -> Any:
        return super().call_later(delay * self.factor, callback, *args, **more)

    def call_at(self, when: Any, callback: Any, *args: Any, **more: Any) -> Any:
        return self.call_later(when - self.time(), callback, *args, **more)


class Client(Caught):
    """A connection without a socket: what it was sent, and waiting for answers.

    Args:
        protocol: The node's side.
        ends: How many answers have come in what came, from a place on.
    """

    def __init__(
        self, protocol: asyncio.Protocol, ends: Callable[[bytearray, int], int]
    ) -> None:
        super().__init__()
        self.protocol = protocol
        self._ends = ends
        self._awaited = self._came = self._seen = 0
        self._whole: asyncio.Future[None] | None = None
        protocol.connection_made(self)

    def write(self, data: Buffer) -> None:
        super().write(data)
        self._look()

    def writelines(self, pieces: Iterable[Buffer]) -> None:
        super().writelines(pieces)
        self._look()

    def _look(self) -> None:
        self._came += self._ends(self.data, self._seen)
        self._seen = len(self.data)
        if self._whole is not None and self._came >= self._awaited:
            self._whole.set_result(None)
            self._whole = None

    def close(self) -> None:
        """Have who waits know that nothing will come."""
        if self._whole is not None:
            self._whole.set_exception(ConnectionError("the node has closed"))
            self._whole = None

    abort = close

    def ask(self, said: bytes, answers: int) -> Awaitable[None]:
        """Say something, and wait until so many answers have come in all."""
        whole = self._whole = asyncio.get_running_loop().create_future()
        self._awaited = answers
        self.protocol.data_received(said)
        return whole

    def taken(self) -> bytes:
        """All that came since the last time."""
        data = bytes(self.data)
        self.data.clear()
        self._came = self._seen = 0
        return data


def answers_of(data: bytearray, at: int) -> int:
    """How many frames came, from a place on."""
    count = 0
    while at < len(data):
        at += 4 + PREFIX.unpack_from(data, at)[0]
        count += 1
    return count


def calls_of(data: bytearray, at: int) -> int:
    """How many calls were answered: how many streams end with headers."""
    count = 0
    while at < len(data):
        high, low, kind, flags = struct.unpack_from(">BHBB", data, at)
        at += 9 + (high << 16 | low)
        count += kind == 1 and flags & 1
    return count


class Bench:
    """A node on the embedded log, in this process, and clients without sockets."""

    def __init__(self, app: App, library: str) -> None:
        self.app = app
        self._counter = ctypes.CDLL(library)
        self._name = b""
        fair_queue, (listener,) = app.server.fair_queue, app.server.listeners
        outbox = Outbox(asyncio.get_running_loop())
        self.clients = [
            Client(
                Connection(app.node, listener, outbox, fair_queue, "127.0.0.1", number),
                answers_of,
            )
            for number in range(1, CLIENTS + 1)
        ]
        self._fair_queue = fair_queue
        self.connect()

    def connect(self) -> None:
        """Have a new connection for calls: one that is silent for long is closed."""
        (listener,) = self.app.server.listeners
        known = SimpleNamespace(
            listener=listener,
            address="127.0.0.1:1",
            packed_address=bytes(8),
            source=Source("127.0.0.1", Channel.REMOTING),
            share=None,
            flow=self._fair_queue.flow("127.0.0.1"),
        )
        service = grpc.protocol.SERVICE.full_name
        self._session = http2.Session(service, grpc.metadata("counted"))
        self._caller = Client(self.app.server.http2.accept(known), calls_of)

    async def measure(
        self, name: str, rounds: int, once: Callable[[], Awaitable[int]]
    ) -> None:
        """Ask twice more than is counted, and print how many messages a round has."""
        for number in range(-2, rounds):
            self._name = f"{number} {name}".encode()
            messages = await once()
        print(f"{messages} {name}", flush=True)

    async def begin(self) -> None:
        """Have every client known, and callgrind count from now on.

        What a node does every so often is done less often from then on: callgrind is
        fifty times as slow, so that it would be in every round, and more on a busy
        machine. Nor are cycles looked for: a node that serves does that rarely.
        """
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SlowTimers), "the program makes it"
        loop.factor = LONGER
        gc.freeze()
        gc.disable()
        for client in self.clients:
            await client.ask(send(0, bytes(128)), 1)
            checked(client, 1)
        self._counter.counter_start()

    async def counted(self, *steps: Callable[[], Awaitable[object]]) -> None:
        """Count what some steps make the node do, each after the one before."""
        self._counter.counter_begin()
        for step in steps:
            await step()
        for _ in range(TICKS):  # what comes behind an answer
            await asyncio.sleep(0)
        self._counter.counter_end(self._name)

    async def ask(self, requests: list[bytes], at_once: int = 1) -> list[bytes]:
        """Count what requests cost on one connection, and return their answers.

        Args:
            requests: Frames.
            at_once: So many come in one read.
        """
        client = self.clients[0]
        asked = [
            partial(client.ask, b"".join(requests[at : at + at_once]), at + at_once)
            for at in range(0, len(requests), at_once)
        ]
        await self.counted(*asked)
        return checked(client, len(requests))

    async def give(self, request: bytes) -> None:
        """Ask for what is not counted."""
        await self.clients[0].ask(request, 1)
        checked(self.clients[0], 1)

    async def call(self, method: str, requests: list[bytes]) -> list[list[bytes]]:
        """Count what gRPC calls cost that come in one read; return their answers."""
        got: list[list[bytes]] = []
        for request in requests:
            self._session.call(http2.Exchange(method, request, got.append))
        await self.counted(partial(self._caller.ask, self._said(), len(requests)))
        self._session.take(self._caller.taken())
        return got

    async def settle(self, topic: str) -> None:
        """Say what the client of calls consumes."""
        telemetry = http2.Exchange("Telemetry", grpc.telemetry(topic), print)
        stream = self._session.open(telemetry)
        while not self._session.first_message(stream):
            await self._caller.ask(self._said(), 0)
            self._session.take(self._caller.taken())

    def _said(self) -> bytes:
        said = bytes(self._session.out)
        self._session.out.clear()
        return said

    def end(self, topic: str) -> int:
        """How many messages the first queue of a topic has."""
        found = self.app.node.topics.get(topic)
        assert found is not None, "it was made"
        return found.partitions[0].end


def checked(client: Client, count: int) -> list[bytes]:
    """The frames that a client got, each of which says that all went well."""
    data, at, found = client.taken(), 0, []
    while at < len(data):
        length, _ = PREFIX.unpack_from(data, at)
        found.append(data[at : at + 4 + length])
        at += 4 + length
    codes = [envelope_of(one).code for one in found]
    if codes != [0] * count:
        raise RuntimeError(f"{count} requests were answered {codes}")
    return found


def envelope_of(answer: bytes) -> Envelope:
    """What the header of a frame says."""
    ((kind, header, _),) = FrameReader().feed(answer)
    return decode_envelope(kind, header)
