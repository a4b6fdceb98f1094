"""One client's connection as a server has it, from its beginning to its end.

A server makes its own kind of it, which makes streams of its own kind.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, cast

import structlog

from ropeway.gateway.http2.errors import ErrorCode
from ropeway.gateway.http2.frames import (
    PING,
    PING_BYTES,
    STREAM_BITS,
    frame,
    goaway_frame,
    settings_frame,
    window_frame,
)
from ropeway.gateway.http2.receiver import CONNECTION_WINDOW_BYTES, Receiver
from ropeway.gateway.http2.sender import FIRST_WINDOW_BYTES, Sender
from ropeway.gateway.http2.settings import HEADER_LIST, INITIAL_WINDOW, STREAMS
from ropeway.gateway.http2.stream import WINDOW_BYTES, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.http2.errors import ConnectionFault
    from ropeway.gateway.http2.receiver import Limits

log = structlog.get_logger(__name__)

_WRITE_BUFFER_BYTES = 256 * 1024
_ANSWER_S = 20.0
"""Time for the answer to a ping: gRPC's own default."""
_LINGER_S = 5.0
"""Time for the last bytes of a connection that is closed."""


class Connection(asyncio.Protocol):
    """Speaks HTTP/2 with one client. What is subclassed of it says what streams do.

    Args:
        limits: What the client may take.
    """

    address = ""
    """Where the client is, for the log."""
    stream: type[Stream] = Stream
    """Which kind of stream serves its requests."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._draining = False
        self.sender = Sender(self.held)
        """Takes what streams answer."""
        self.receiver = Receiver(
            limits, partial(self.stream, self), self.sender, self.fail
        )
        """Knows the streams."""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.active = True
        """Whether a byte came since the last look."""
        self.closed = False

    # -- what is subclassed

    def held(self, size: int) -> None:
        """By so much more, or less, waits in streams for the client to take it."""

    def holds_back(self) -> bool:
        """Whether nothing is to be read for now."""
        return False

    # -- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected: say what it may take."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        self.sender.open(self._transport.write)
        ours = {
            STREAMS: self._limits.streams,
            INITIAL_WINDOW: WINDOW_BYTES,
            HEADER_LIST: self._limits.fields_bytes,
        }
        more = CONNECTION_WINDOW_BYTES - FIRST_WINDOW_BYTES
        self.sender.send(settings_frame(ours) + window_frame(0, more))
        self._look_after(self._limits.keepalive_s, self._look)

    def data_received(self, data: bytes) -> None:
        """Take every frame that is whole."""
        self.active = True
        self.receiver.feed(data)

    def pause_writing(self) -> None:
        """The client does not take what it is sent."""
        self.sender.congested = True
        self.pause_or_resume()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self.sender.congested = False
        self.sender.go_on()
        self.pause_or_resume()

    def pause_or_resume(self) -> None:
        """Read from the client, or not, as things are now."""
        if self._transport is None or self.closed or self._transport.is_closing():
            return
        if self.sender.congested or self.holds_back():
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        """The client has gone, and all that it asked for."""
        self.closed = True
        self._leave()

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.receiver.close()
        self.sender.close()

    # -- the server's side

    def drain(self) -> None:
        """Let the client begin nothing more here; what is begun goes on."""
        if not self.closed and not self._draining:
            self._draining = True
            # Those are worked on that are on their way (6.8).
            self.sender.send(goaway_frame(STREAM_BITS, ErrorCode.NO_ERROR))

    @property
    def in_flight(self) -> int:
        """Streams that have not ended."""
        return len(self.receiver.streams)

    def close(self) -> None:
        """End all streams that have not ended, then close."""
        self._end(ErrorCode.NO_ERROR, "")

    def fail(self, fault: ConnectionFault) -> None:
        """End the connection of a client that broke a rule."""
        log.warning("connection closed", client=self.address, reason=fault.reason)
        self._end(fault.code, fault.reason)

    def _end(self, code: ErrorCode, reason: str) -> None:
        if self._transport is None or self.closed:
            return
        self.sender.send(goaway_frame(self.receiver.last_id, code, reason))
        self.sender.flush()
        self.closed = True
        self._leave()
        self._transport.close()
        # One that takes nothing would stay for ever.
        self._look_after(_LINGER_S, self._transport.abort)

    @property
    def unsent_bytes(self) -> int:
        """What the transport has yet to write."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def abort(self) -> None:
        """Close at once, whatever the client has not taken."""
        self.closed = self.receiver.closed = True
        self.sender.stop()
        if self._transport is not None:
            self._transport.abort()

    def _look_after(self, wait_s: float, look: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(wait_s, look)

    def _look(self) -> None:
        """Ask a client that has been silent whether it is there."""
        if not self.active and not self.holds_back():
            self.sender.send(frame(PING, 0, 0, bytes(PING_BYTES)))
            self._look_after(_ANSWER_S, self._look_again)
            return
        self.active = False
        self._look_after(self._limits.keepalive_s, self._look)

    def _look_again(self) -> None:
        if self.active:
            self._look()
            return
        log.info("connection closed", client=self.address, reason="no answer to a ping")
        self.abort()
