"""A client that says exactly what a test wants, and a server that echoes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hpack import Decoder

from ropeway.gateway.http2.connection import Connection
from ropeway.gateway.http2.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    FrameReader,
    frame,
    settings_frame,
)
from ropeway.gateway.http2.headers import encode
from ropeway.gateway.http2.receiver import Limits
from ropeway.gateway.http2.stream import Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

WAIT_S = 60
LIMITS = Limits(streams=10, fields_bytes=16 * 1024, keepalive_s=60)
REQUEST = [(":method", "POST"), (":scheme", "http"), (":path", "/echo")]
FIRST, LAST = encode([(":status", "200")]), encode([("done", "yes")])


class Echo(Stream, eq=False):
    """Answers what came, when all of it came."""

    came: bytes = b""
    fields: Any = None
    was_lost: bool = False

    def begin(self, fields: Any) -> None:
        self.fields = fields
        self.connection.begun.append(self)
        if self.ended:
            self.answer()

    def take(self, data: bytes) -> None:
        self.came += data
        if self.ended:
            self.answer()

    def answer(self) -> None:
        if self.fields[":path"] == "/echo":
            sender = self.connection.sender
            sender.whole(self, FIRST, self.came or b"nothing", LAST)

    def lost(self) -> None:
        self.was_lost = True


class Echoing(Connection):
    """Keeps what a test asks for."""

    stream = Echo

    def __init__(self, limits: Limits = LIMITS) -> None:
        super().__init__(limits)
        self.begun: list[Echo] = []
        self.held_bytes = 0
        self.lost = False

    def held(self, size: int) -> None:
        self.held_bytes += size

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.lost = True


class Raw:
    """A client's side: frames out and in.

    Args:
        reader: Of a connection.
        writer: Of the same.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader, self.writer = reader, writer
        self._frames = FrameReader()
        self._frames.feed(PREFACE)
        self._came: list[tuple[int, int, int, bytes]] = []
        self.decoder = Decoder()

    def send(self, *frames: bytes) -> None:
        """Send bytes."""
        self.writer.write(b"".join(frames))

    def begin(self, settings: dict[int, int] | None = None) -> None:
        """Say what every client says first."""
        self.send(PREFACE, settings_frame(settings or {}))

    def request(
        self, stream_id: int, data: bytes | None = None, path: str = "/echo"
    ) -> None:
        """Ask."""
        fields = [*REQUEST[:2], (":path", path)]
        flags = END_HEADERS | (END_STREAM if data is None else 0)
        self.send(frame(HEADERS, flags, stream_id, encode(fields)))
        if data is not None:
            self.send(frame(DATA, END_STREAM, stream_id, data))

    async def read(self) -> tuple[int, int, int, bytes] | None:
        """The next frame; None at the end of the connection."""
        async with asyncio.timeout(WAIT_S):
            while not self._came:
                try:
                    data = await self._reader.read(1 << 16)
                except ConnectionError:
                    return None
                if not data:
                    return None
                self._came = self._frames.feed(data)
        return self._came.pop(0)

    async def until(self, *kinds: int) -> tuple[int, int, int, bytes]:
        """The next frame of these kinds."""
        while (one := await self.read()) is not None:
            if one[0] in kinds:
                return one
        raise AssertionError(f"the connection ended before {kinds}")

    async def answer(self, stream_id: int) -> tuple[bytes, dict[str, str]]:
        """All DATA of a stream, and its last fields."""
        data = b""
        while True:
            kind, flags, number, payload = await self.until(HEADERS, DATA)
            fields = {}
            if kind == HEADERS:
                fields = dict(self.decoder.decode(payload))
            elif number == stream_id:
                data += payload
            if number == stream_id and flags & END_STREAM:
                return data, fields

    async def reset_code(self, stream_id: int) -> int:
        """Why a stream is reset."""
        while True:
            _, _, number, payload = await self.until(RST_STREAM)
            if number == stream_id:
                return int.from_bytes(payload, "big")

    async def goaway_code(self) -> int:
        """Why the connection is ended; it must be."""
        _, _, _, payload = await self.until(GOAWAY)
        while await self.read() is not None:
            pass
        return int.from_bytes(payload[4:8], "big")

    async def is_well(self) -> bool:
        """Whether the connection still answers."""
        self.send(frame(PING, 0, 0, b"are you?"))
        while True:
            _, flags, _, payload = await self.until(PING)
            if flags and payload == b"are you?":
                return True


@asynccontextmanager
async def echoing(
    limits: Limits = LIMITS, *, begin: bool = True
) -> AsyncIterator[tuple[Echoing, Raw]]:
    """A connection to a server that echoes: its side of it, and the client's."""
    made: list[Echoing] = []

    def make() -> Echoing:
        made.append(Echoing(limits))
        return made[0]

    loop = asyncio.get_running_loop()
    server = await loop.create_server(make, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    client = Raw(*await asyncio.open_connection(*address))
    try:
        await client.until(SETTINGS)
        if begin:
            client.begin()
        yield made[0], client
    finally:
        client.writer.close()
        made[0].close()
        server.close()
