"""The admin REST of Pulsar's model over the simulated network.

A request is a connection of its own, and a line of JSON each way; what it means is
`pulsar_admin`'s.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from tests.simulation.connections import Listening
from tests.simulation.pulsar_admin import Answer, Asked, answered

if TYPE_CHECKING:
    from yarl import URL

    from ropeway.storage.pulsar.rest import Rest
    from tests.simulation.connections import End
    from tests.simulation.pulsar_brokers import Broker

PORT = 8080


class Session(asyncio.Protocol):
    """A connection, as the broker sees it: one request, a line of JSON."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._received = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(b"\n"):
            asked = msgspec.json.decode(self._received, type=Asked)
            self._broker.later(self._answer, asked)

    def _answer(self, asked: Asked) -> None:
        answer = answered(self._broker, asked)
        self._broker.later(self._tell, msgspec.json.encode(answer) + b"\n")

    def _tell(self, data: bytes) -> None:
        self._transport.write(data)

    def eof_received(self) -> None:
        """Close, as the other side does."""


def listen(broker: Broker) -> None:
    """Have a broker's process answer."""
    assert broker.process is not None
    listening = Listening(broker.pulsar.network, broker.process, PORT)
    listening.is_tapped = False

    def accept() -> None:
        while listening.arriving:
            end: End = listening.arriving.popleft()
            if not end.lost:
                end.protocol = Session(broker)
                end.protocol.connection_made(end)
                end._call(end._take)

    listening.watch(accept)


class _Asking(asyncio.Protocol):
    """A connection, as a client sees it."""

    def __init__(self) -> None:
        self.answer = asyncio.get_running_loop().create_future()
        # Who asked may have stopped waiting.
        self.answer.add_done_callback(lambda one: one.cancelled() or one.exception())
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(b"\n") and not self.answer.done():
            self.answer.set_result(msgspec.json.decode(self._received, type=Answer))

    def connection_lost(self, _: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(aiohttp.ServerDisconnectedError())


async def exchange(
    rest: Rest, method: str, where: URL, body: object
) -> tuple[int, bytes, str]:
    """Take the place of `Rest._exchange`."""
    loop = asyncio.get_running_loop()
    path = where.raw_path.removeprefix("/admin/v2/")
    asked = Asked(method, path, dict(where.query), body)
    async with asyncio.timeout(rest._timeout_s):
        try:
            end, asking = await loop.create_connection(_Asking, where.host, PORT)
        except OSError as error:
            raise aiohttp.ClientConnectionError(str(error)) from error
        try:
            end.write(msgspec.json.encode(asked) + b"\n")
            answer: Answer = await asking.answer
        finally:
            asking.answer.cancel()
            end.close()
    content = b"" if answer.content is None else msgspec.json.encode(answer.content)
    onward = answer.onward and str(where.with_host(answer.onward))
    return answer.status, content, onward
