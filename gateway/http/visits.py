"""Connections to the page: how many there are, how long they take, and their turns.

The page runs on the loop that serves brokers' clients, so all of its connections share
the turns of one flow, and it has file descriptors for so many connections and no more:
whatever comes here, who sends and receives messages is not kept out.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

import structlog
from aiohttp import web

from gateway.http.replies import reply
from gateway.wire import host_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.config import HttpConfig
    from gateway.node.turns import Turns

log = structlog.get_logger(__name__)

FLOW = "page"
MAX_BODY_BYTES = 64 * 1024
KEEPALIVE_S = 75.0
"""How long a connection stays that asks for nothing more, as with nginx."""
LINGER_S = 1.0
"""How long a body is read on that nobody wants, so that the answer is read before."""
_PIECE_BYTES = 4 * 1024
"""So much is parsed without a look at the clock: a few milliseconds at worst."""


class Visits:
    """All connections to the page.

    Args:
        config: How many there may be, and how long they may take.
        turns: Who else waits.
        make: Makes what speaks HTTP on a connection.
    """

    def __init__(
        self, config: HttpConfig, turns: Turns, make: Callable[[], asyncio.Protocol]
    ) -> None:
        self.config = config
        self.turns = turns
        self.make = make
        self.flow = turns.flow(FLOW)
        self.open: set[Visit] = set()

    def __call__(self) -> Visit:
        """A protocol for one more connection."""
        return Visit(self)


class Visit(asyncio.Protocol):
    """One connection: passes bytes on when it has a turn, and knows the time."""

    def __init__(self, visits: Visits) -> None:
        self._visits = visits
        self.flow = visits.flow
        self.slices = visits.turns.slices(FLOW)
        """What its answers are made in."""
        self._inner: asyncio.Protocol | None = None
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle | None = None
        self._kept = b""
        """What came, and is not parsed yet."""
        self._queued = False
        self._refuses = False
        """Whether what speaks HTTP takes nothing for now."""
        self._answering = 0
        self._is_deaf = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected."""
        self._transport = cast("asyncio.Transport", transport)
        visits = self._visits
        if len(visits.open) >= visits.config.connections:
            log.info(
                "connection refused",
                reason="too many connections to the page",
                allowed=visits.config.connections,
            )
            self._transport.abort()
            return
        visits.open.add(self)
        self._inner = visits.make()
        self._inner.connection_made(Line(self, self._transport))
        self._await_request()

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended."""
        self._visits.open.discard(self)
        self._stop_timer()
        self._kept = b""
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.connection_lost(error)

    def eof_received(self) -> bool | None:
        """Nothing more will come."""
        return self._inner.eof_received() if self._inner is not None else None

    def pause_writing(self) -> None:
        """It does not take what it is sent."""
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It has caught up."""
        if self._inner is not None:
            self._inner.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Bytes came: parse them at once, or when it is this connection's turn."""
        if self._is_deaf:
            return
        if not self._answering and self._timer is None:
            self._await_request()
        self._kept += data
        turns = self._visits.turns
        if not self._queued and turns.is_free():
            self._parse(turns.tick_over_at)
        else:
            self._queue()

    def take_turn(self, _now: float, until: float) -> int:
        """Parse what waited, until a time."""
        self._queued = False
        self._parse(until)
        return 0

    def _parse(self, until: float) -> None:
        while self._kept and self._inner is not None and not self._refuses:
            piece, self._kept = self._kept[:_PIECE_BYTES], self._kept[_PIECE_BYTES:]
            self._inner.data_received(piece)
            if time.monotonic() > until:
                break
        if self._kept and not self._refuses:
            self._queue()
        self._read_or_not()

    def _queue(self) -> None:
        if not self._queued and self._inner is not None:
            self._queued = True
            self._visits.turns.join(self)
        self._read_or_not()

    def _read_or_not(self) -> None:
        if self._inner is None or self._transport.is_closing():
            return
        if self._is_deaf or self._refuses or self._queued or self._kept:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def refuse(self, *, refuses: bool) -> None:
        """Take nothing more for now, or again."""
        self._refuses = refuses
        if self._kept and not refuses:
            self._queue()
        self._read_or_not()

    def hear_no_more(self) -> None:
        """Read nothing more: the rest of a body that nobody wants."""
        self._is_deaf = True
        self._kept = b""
        self._read_or_not()

    # -- time

    def began(self) -> None:
        """A request's headers are whole."""
        self._answering += 1
        self._stop_timer()

    def ended(self) -> None:
        """A request is answered."""
        self._answering -= 1

    def _await_request(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(
            self._visits.config.headers_ms / 1000, self._late
        )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        address = self._transport.get_extra_info("peername")
        log.info(
            "connection closed",
            client=host_port.join(*address[:2]) if address else "",
            reason="no request in time",
        )
        self._transport.abort()


class Line(asyncio.Transport):
    """The transport as what speaks HTTP sees it: it says only if it wants to read."""

    def __init__(self, visit: Visit, transport: asyncio.Transport) -> None:
        super().__init__()
        self.visit = visit
        self._transport = transport
        # Whatever else is asked of it.
        for name in (
            *("abort", "close", "get_extra_info", "get_write_buffer_size"),
            *("is_closing", "set_write_buffer_limits", "write", "writelines"),
            *("can_write_eof", "write_eof", "get_protocol", "set_protocol"),
        ):
            if hasattr(transport, name):
                setattr(self, name, getattr(transport, name))

    def pause_reading(self) -> None:
        """Give nothing more for now."""
        self.visit.refuse(refuses=True)

    def resume_reading(self) -> None:
        """Go on."""
        self.visit.refuse(refuses=False)


class Runner(web.AppRunner):
    """Runs an application on connections that are counted.

    Args:
        application: The page.
        config: How many there may be.
        turns: Who else waits.
    """

    __slots__ = ("_config", "_turns")

    def __init__(
        self,
        application: web.Application,
        config: HttpConfig,
        turns: Turns,
        **more: Any,
    ) -> None:
        super().__init__(
            application,
            keepalive_timeout=KEEPALIVE_S,
            lingering_time=LINGER_S,
            **more,
        )
        self._config = config
        self._turns = turns

    @property
    def server(self) -> Any:
        """What makes a protocol for each connection."""
        made = super().server
        return None if made is None else Visits(self._config, self._turns, made)


@web.middleware
async def in_turn(request: web.Request, handler: Any) -> web.StreamResponse:
    """Answer a request when the page has a turn."""
    line = request.transport
    visit = line.visit if isinstance(line, Line) else None
    if visit is None:
        return cast("web.StreamResponse", await handler(request))
    visit.began()
    try:
        size = request.content_length or 0
        if size > MAX_BODY_BYTES or "Transfer-Encoding" in request.headers:
            visit.hear_no_more()
            came = f"body of {size} bytes" if size else "body of unknown length"
            sentence = f"{came}; allowed: {MAX_BODY_BYTES}, with Content-Length"
            return reply({"error": sentence}, status=413)
        await visit.slices.pause()
        return cast("web.StreamResponse", await handler(request))
    finally:
        visit.ended()
