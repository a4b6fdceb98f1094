"""A broker that does what a test tells it, for faults that no real one shows on demand.

It speaks through the same codec as the client, whose bytes other tests compare with
those of real clients and brokers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ropeway.storage.pulsar.commands import (
    CloseProducer,
    Connect,
    Connected,
    Lookup,
    LookupAnswer,
    LookupType,
    MessageId,
    OpenProducer,
    ProducerSuccess,
    Refused,
    Send,
    SendReceipt,
    Subscribe,
    Success,
)
from ropeway.storage.pulsar.errors import WireError
from ropeway.storage.pulsar.frames import Deframer, command_frame, decode_frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ropeway.storage.pulsar.protobuf import Message

TOPIC = "persistent://public/default/topic"


class Peer(asyncio.Protocol):
    """One connection that the broker has accepted."""

    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self.deframer = Deframer()
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.broker.peers.append(self)

    def data_received(self, data: bytes) -> None:
        with contextlib.suppress(WireError):  # it then says nothing
            for frame in self.deframer.feed(data):
                command, _ = decode_frame(frame)
                if command is not None:
                    self.broker.came(self, command)

    def tell(self, command: Message) -> None:
        self.transport.write(command_frame(command))


class FakeBroker:
    """Answers each kind of command by a function that a test may replace.

    `answers[kind]` gets the peer and the command, and says what to tell; None says
    nothing.
    """

    def __init__(self) -> None:
        self.peers: list[Peer] = []
        self.seen: list[Message] = []
        self.url = ""
        self.entries = 0
        self.last_sequence_id = -1
        self.answers: dict[type, Callable[[Peer, Any], Message | None]] = {
            Connect: lambda _, __: Connected("fake", 21, 1000),
            Lookup: lambda _, asked: LookupAnswer(
                self.url, response=LookupType.CONNECT, request_id=asked.request_id
            ),
            OpenProducer: lambda _, asked: ProducerSuccess(
                *(asked.request_id, asked.producer_name, self.last_sequence_id),
                topic_epoch=asked.topic_epoch or 3,
            ),
            Send: self.store,
            Subscribe: lambda _, asked: Success(asked.request_id),
            CloseProducer: lambda _, asked: Success(asked.request_id),
        }
        self._changed: dict[type, asyncio.Event] = defaultdict(asyncio.Event)

    def store(self, _peer: Peer, send: Send) -> SendReceipt:
        """Acknowledge an entry; repeats are dropped, as deduplication does."""
        if send.sequence_id <= self.last_sequence_id:
            return SendReceipt(send.producer_id, send.sequence_id)
        self.entries += 1
        self.last_sequence_id = send.sequence_id
        where = MessageId(7, self.entries - 1)
        return SendReceipt(send.producer_id, send.sequence_id, where)

    def came(self, peer: Peer, command: Message) -> None:
        self.seen.append(command)
        answer = self.answers.get(type(command), lambda _, __: None)(peer, command)
        if answer is not None:
            peer.tell(answer)
        self._changed[type(command)].set()

    def of(self, kind: type) -> list[Any]:
        """The commands of a kind that came."""
        return [one for one in self.seen if type(one) is kind]

    async def wait(self, kind: type, count: int) -> list[Any]:
        """Return when so many commands of a kind came."""
        while len(self.of(kind)) < count:
            self._changed[kind].clear()
            await self._changed[kind].wait()
        return self.of(kind)

    def refuse(self, kind: type, error: int, times: int = 1 << 30) -> None:
        """Answer a kind of request so often with an error, and then as before."""
        usual = self.answers[kind]
        left = [times]

        def answer(peer: Peer, asked: Any) -> Message | None:
            left[0] -= 1
            if left[0] < 0:
                return usual(peer, asked)
            return Refused(asked.request_id, error, "so told")

        self.answers[kind] = answer


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[FakeBroker]:
    """A broker on a free port of 127.0.0.1."""
    broker = FakeBroker()
    server = await asyncio.get_running_loop().create_server(
        lambda: Peer(broker), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    broker.url = f"pulsar://127.0.0.1:{port}"
    try:
        yield broker
    finally:
        for peer in broker.peers:
            peer.transport.abort()
        server.close()
        await server.wait_closed()
