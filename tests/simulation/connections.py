"""Connections in the simulated network: their ends, and sockets that listen.

An end is a transport to its protocol. What it writes reaches the other end in order;
`network` says when.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.loop import Process
    from tests.simulation.network import Network

WINDOW_BYTES = 256 * 1024
"""What a receiver takes that does not read."""
RESET_S = 0.2
"""How long until who sends to a machine that has forgotten him hears so."""
HIGH_BYTES = 64 * 1024


class End(asyncio.Transport):
    """One end of a connection, as its protocol sees it."""

    def __init__(self, network: Network, process: Process, name: Any) -> None:
        super().__init__()
        self.network = network
        self.process = process
        self.name = name
        self.peer: End
        self.protocol: Any = None
        self._context = contextvars.copy_context()
        self.received: deque[bytes] = deque()
        """What came and was not taken."""
        self._received_bytes = 0
        self._sent_bytes = 0
        """What the peer has not taken."""
        self._high = HIGH_BYTES
        self._is_paused = False
        self._reads = True
        self._ended = False
        """Whether the peer has closed; told once all before it was taken."""
        self.closing = False
        self.lost = False
        self.silent = False
        """Whether nothing that it sends arrives, and nobody says so."""
        self.deaf_until_s = 0.0
        """It takes nothing until then: a slow reader."""
        self.tap: Any = None
        """Sees what a client sends and is sent; see `taps`."""
        self._last_s = 0.0
        """When the last of what it sent arrives."""

    # -- what a protocol asks of a transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "sockname":
            return self.name
        return self.peer.name if name == "peername" else default

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def is_closing(self) -> bool:
        return self.closing

    def is_reading(self) -> bool:
        return self._reads and not self.closing

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        if not self._reads:
            self._reads = True
            self._call(self._take)

    def set_write_buffer_limits(
        self, high: int | None = None, low: int | None = None
    ) -> None:
        del low
        self._high = HIGH_BYTES if high is None else high

    def get_write_buffer_size(self) -> int:
        return max(0, self._sent_bytes - WINDOW_BYTES)

    def can_write_eof(self) -> bool:
        return False

    def write(self, data: Any) -> None:
        if self.closing or self.lost or not data:
            return
        self._send(bytes(data))

    def writelines(self, pieces: Any) -> None:
        self.write(b"".join(pieces))

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            self._arrive(self.peer._close_by_peer)
            self._call(self._lose, None)

    def abort(self) -> None:
        self.closing = True
        if not self.lost:
            self._arrive(self.peer.reset)
            self._call(self._lose, None)

    # -- the network's side

    def _call(self, callback: Callable[..., None], *args: Any) -> None:
        self.network.loop.call_soon(callback, *args, context=self._context.copy())

    def _send(self, data: bytes) -> None:
        self._sent_bytes += len(data)
        if self.tap is not None:
            self.tap.sent(data)
        elif self.network.shows is not None and self.peer.tap is not None:
            self.network.shows(self.process.host, data)
        pieces = self.network.pieces(data)
        for piece in pieces:
            self._arrive(self.peer._arrived, piece)
        if not self._is_paused and self.get_write_buffer_size() > self._high:
            self._is_paused = True
            self.protocol.pause_writing()

    def _arrive(self, callback: Callable[..., None], *args: Any) -> None:
        """Have the peer notice something, behind all that went before."""
        if self.silent or not self.process.alive:
            return
        peer = self.peer
        if self.network.is_dark(peer.process.host):
            return
        if peer.lost or not peer.process.alive:
            # Whoever is there now does not know this connection.
            self.network.later(RESET_S, self._context, self.reset)
            return
        when = self.network.arrival_s(self.process.host, peer.process.host)
        # Timers of the same moment have no order.
        self._last_s = when = max(when, self._last_s + 1e-7)
        self.network.loop.call_at(when, callback, *args, context=peer._context.copy())

    def _arrived(self, data: bytes) -> None:
        if self.lost or self.closing:
            return
        self.received.append(data)
        self._received_bytes += len(data)
        self._take()

    def _take(self) -> None:
        """Give the protocol what came."""
        if self.protocol is None:
            return
        wait_s = self.deaf_until_s - self.network.loop.time()
        if wait_s > 0:
            self.network.later(wait_s + 1e-3, self._context, self._take)
            return
        while self.received and self._reads and not self.closing:
            data = self.received.popleft()
            self._received_bytes -= len(data)
            self.peer._taken(len(data))
            if self.tap is not None:
                self.tap.received(data)
            self.protocol.data_received(data)
        if self._ended and not self.received and not self.closing:
            self.closing = True
            self.protocol.eof_received()
            self._call(self._lose, None)

    def _taken(self, size: int) -> None:
        self._sent_bytes -= size
        if self._is_paused and self.get_write_buffer_size() <= self._high // 4:
            self._is_paused = False
            self._call(self.protocol.resume_writing)

    def _close_by_peer(self) -> None:
        self._ended = True
        self._take()

    def reset(self) -> None:
        """Lose the connection, as when the peer knows nothing of it."""
        self.closing = True
        error = ConnectionResetError(errno.ECONNRESET, "connection reset")
        # Whoever tells it, it is this end's process that hears of it.
        self._context.copy().run(self._lose, error)

    def _lose(self, error: Exception | None) -> None:
        if self.lost:
            return
        self.lost = self.closing = True
        self.network.ends.pop(self, None)
        if self.protocol is not None:
            self.protocol.connection_lost(error)


class Arriving:
    """A connection that a listener accepted, as a socket that is not joined yet."""

    def __init__(self, end: End) -> None:
        self.end = end

    def setsockopt(self, *_: Any) -> None:
        """Nothing to set."""

    def setblocking(self, _: bool) -> None:
        """It never blocks."""

    def shutdown(self, _: int) -> None:
        self.end.abort()

    def close(self) -> None:
        if self.end.protocol is None:
            self.end.abort()


class Listening:
    """A socket that listens."""

    def __init__(self, network: Network, process: Process, port: int) -> None:
        self._network = network
        self._process = process
        self._name = process.host, port
        self._open = True
        self._ready: Callable[[], None] | None = None
        self.arriving: deque[End] = deque()
        self.is_tapped = True
        """Whether what clients send is looked at; see `taps`."""
        network.listeners[self._name] = self

    def fileno(self) -> int:
        return 1 << 20 if self._open else -1

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def accept(self) -> tuple[Arriving, tuple[str, int]]:
        if not self.arriving:
            raise BlockingIOError
        end = self.arriving.popleft()
        return Arriving(end), end.peer.name

    def close(self) -> None:
        self._open = False
        if self._network.listeners.get(self._name) is self:
            del self._network.listeners[self._name]

    def watch(self, ready: Callable[[], None] | None) -> None:
        """Call back when somebody arrives."""
        self._ready = ready
        if self.arriving:
            self.tell()

    def knock(self, end: End) -> None:
        """Have a connection wait to be accepted."""
        self.arriving.append(end)
        self.tell()

    def tell(self) -> None:
        if self._ready is not None:
            context = self._process.context.copy()
            self._network.loop.call_soon(self._ready, context=context)

    @property
    def process(self) -> Process:
        return self._process
