"""Connections to the page: their number, their time-outs, and their turns.

The page runs on the event loop that serves RocketMQ clients. Its connections share the
turns of one flow, and their number is limited, so it leaves event-loop time and file
descriptors to those clients.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

import structlog
from aiohttp import web

from ropeway.gateway.http.replies import reply
from ropeway.gateway.wire import host_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.config import HttpConfig
    from ropeway.gateway.node.fair_queueing import FairQueue

log = structlog.get_logger(__name__)

FLOW = "page"
MAX_BODY_BYTES = 64 * 1024
KEEPALIVE_S = 75.0
"""How long a connection stays that asks for nothing more, as with nginx."""
LINGER_S = 1.0
"""How long a refused body is read on, so that the client reads the answer first."""
_PIECE_BYTES = 4 * 1024
"""So much is parsed without a look at the clock: a few milliseconds at worst."""


class Connections:
    """All connections to the page.

    Args:
        config: Their greatest number, and their time-outs.
        fair_queue: The fair queue that they share with RocketMQ clients.
        make: Creates aiohttp's protocol for a connection.
    """

    def __init__(
        self,
        config: HttpConfig,
        fair_queue: FairQueue,
        make: Callable[[], asyncio.Protocol],
    ) -> None:
        self.config = config
        self.fair_queue = fair_queue
        self.make = make
        self.flow = fair_queue.flow(FLOW)
        self.open: set[PageConnection] = set()

    def __call__(self) -> PageConnection:
        """Create the protocol of one more connection."""
        return PageConnection(self)


class PageConnection(asyncio.Protocol):
    """One connection: gives bytes to aiohttp in its turns, and enforces time-outs."""

    has_large = False

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.flow = connections.flow
        self.slices = connections.fair_queue.slices(FLOW)
        """Its requests are worked on in these."""
        self._inner: asyncio.Protocol | None = None
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._buffer = b""
        """Received, and not parsed yet."""
        self._is_queued = False
        self._is_paused = False
        """Whether aiohttp has paused reading."""
        self._answering = 0
        self._is_discarding = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start serving, or close one connection too many."""
        self._transport = cast("asyncio.Transport", transport)
        connections = self._connections
        if len(connections.open) >= connections.config.connections:
            log.info(
                "connection refused",
                reason="too many connections to the page",
                allowed=connections.config.connections,
            )
            self._transport.abort()
            return
        connections.open.add(self)
        self._inner = connections.make()
        self._inner.connection_made(PageTransport(self, self._transport))
        self._await_request()

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection."""
        self._connections.open.discard(self)
        self._stop_timer()
        self._buffer = b""
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.connection_lost(error)

    def eof_received(self) -> bool | None:
        """Tell aiohttp that the client sends nothing more."""
        return self._inner.eof_received() if self._inner is not None else None

    def pause_writing(self) -> None:
        """Tell aiohttp that the client reads too slowly."""
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Tell aiohttp that the client has caught up."""
        if self._inner is not None:
            self._inner.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse bytes at once, or in this connection's turn."""
        if self._is_discarding:
            return
        if not self._answering and self._timer is None:
            self._await_request()
        self._buffer += data
        fair_queue = self._connections.fair_queue
        if not self._is_queued and fair_queue.is_free():
            self._parse(fair_queue.tick_over_at)
        else:
            self._queue()

    def take_turn(self, _now: float, until: float) -> int:
        """Parse buffered bytes, until a time."""
        self._is_queued = False
        self._parse(until)
        return 0

    def close(self) -> None:
        """End the connection: its turn failed."""
        self._transport.close()

    def _parse(self, until: float) -> None:
        while self._buffer and self._inner is not None and not self._is_paused:
            piece, self._buffer = (
                self._buffer[:_PIECE_BYTES],
                self._buffer[_PIECE_BYTES:],
            )
            self._inner.data_received(piece)
            if time.monotonic() > until:
                break
        if self._buffer and not self._is_paused:
            self._queue()
        self._update_reading()

    def _queue(self) -> None:
        if not self._is_queued and self._inner is not None:
            self._is_queued = True
            self._connections.fair_queue.join(self)
        self._update_reading()

    def _update_reading(self) -> None:
        if self._inner is None or self._transport.is_closing():
            return
        if self._is_discarding or self._is_paused or self._is_queued or self._buffer:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def pause(self, *, is_paused: bool) -> None:
        """Pause giving bytes to aiohttp, or go on."""
        self._is_paused = is_paused
        if self._buffer and not is_paused:
            self._queue()
        self._update_reading()

    def discard_body(self) -> None:
        """Drop what came, and read nothing more: the body was refused."""
        self._is_discarding = True
        self._buffer = b""
        self._update_reading()

    # -- time

    def began(self) -> None:
        """Note that a request's headers are complete."""
        self._answering += 1
        self._stop_timer()

    def ended(self) -> None:
        """Note that a request is answered."""
        self._answering -= 1

    def _await_request(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(
            self._connections.config.headers_ms / 1000, self._time_out
        )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        address = self._transport.get_extra_info("peername")
        log.info(
            "connection closed",
            client=host_port.join(*address[:2]) if address else "",
            reason="no request in time",
        )
        self._transport.abort()


class PageTransport(asyncio.Transport):
    """The transport that aiohttp sees: pausing it pauses parsing, not the socket."""

    def __init__(
        self, connection: PageConnection, transport: asyncio.Transport
    ) -> None:
        super().__init__()
        self.connection = connection
        self._transport = transport
        # All else is the socket's.
        for name in (
            *("abort", "close", "get_extra_info", "get_write_buffer_size"),
            *("is_closing", "set_write_buffer_limits", "write", "writelines"),
            *("can_write_eof", "write_eof", "get_protocol", "set_protocol"),
        ):
            if hasattr(transport, name):
                setattr(self, name, getattr(transport, name))

    def pause_reading(self) -> None:
        """Pause parsing."""
        self.connection.pause(is_paused=True)

    def resume_reading(self) -> None:
        """Resume parsing."""
        self.connection.pause(is_paused=False)


class Runner(web.AppRunner):
    """Runs an application on `Connections`.

    Args:
        application: The page.
        config: Limits of its connections.
        fair_queue: The fair queue.
    """

    __slots__ = ("_config", "_fair_queue")

    def __init__(
        self,
        application: web.Application,
        config: HttpConfig,
        fair_queue: FairQueue,
        **more: Any,
    ) -> None:
        super().__init__(
            application,
            keepalive_timeout=KEEPALIVE_S,
            lingering_time=LINGER_S,
            **more,
        )
        self._config = config
        self._fair_queue = fair_queue

    @property
    def server(self) -> Any:
        """The factory of protocols; None before the application is set up."""
        made = super().server
        return (
            None if made is None else Connections(self._config, self._fair_queue, made)
        )


@web.middleware
async def in_turn(request: web.Request, handler: Any) -> web.StreamResponse:
    """Middleware: handle a request in the page's turn; refuse a long body."""
    transport = request.transport
    connection = transport.connection if isinstance(transport, PageTransport) else None
    if connection is None:
        return cast("web.StreamResponse", await handler(request))
    connection.began()
    try:
        size = request.content_length or 0
        if size > MAX_BODY_BYTES or "Transfer-Encoding" in request.headers:
            connection.discard_body()
            came = f"body of {size} bytes" if size else "body of unknown length"
            sentence = f"{came}; allowed: {MAX_BODY_BYTES}, with Content-Length"
            return reply({"error": sentence}, status=413)
        await connection.slices.pause()
        return cast("web.StreamResponse", await handler(request))
    finally:
        connection.ended()
