"""One client's connection: frames in, answers out once a tick, and its limits.

Back-pressure both ways: no request of a client is begun while the client does not take
its answers, nor while it has too many requests in flight.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, cast

import structlog

from gateway.processors.dispatch import dispatch
from gateway.wire import host_port, message
from gateway.wire.codes import RESPONSE_FLAG, Language
from gateway.wire.errors import FrameError
from gateway.wire.frame import FrameReader, decode_envelope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.config import LimitsConfig
    from gateway.listener import Listener, Outbox
    from gateway.node.node import Node
    from gateway.wire.frame import Buffer, Envelope, RawFrame

log = structlog.get_logger(__name__)

_JOIN_BELOW = 16 * 1024
"""Answers of a tick up to this size are copied together, for one small write."""

_FLUSH_ABOVE = 1024 * 1024
"""Answers that have gathered to this size are written before the tick ends, so that
a client that does not take them is known before more is read for it."""

_MAX_LANGUAGE = 32


class Connection(asyncio.Protocol):
    """A client's connection, the `Peer` of its requests."""

    __slots__ = (
        "_backlog",
        "_draining",
        "_in_flight",
        "_limits",
        "_node",
        "_out",
        "_out_bytes",
        "_outbox",
        "_paused",
        "_reader",
        "_slow_since",
        "_transport",
        "active",
        "address",
        "advertised",
        "closed",
        "congested",
        "id_prefix",
        "language",
        "listener",
        "packed_address",
        "packed_advertised",
        "version",
    )

    def __init__(
        self, node: Node, listener: Listener, outbox: Outbox, host: str, port: int
    ) -> None:
        self._node = node
        self._limits: LimitsConfig = node.config.limits
        self._outbox = outbox
        self._reader = FrameReader(self._limits.frame_bytes)
        self._backlog: list[RawFrame] = []
        """Requests that came and wait until reading goes on."""
        self._draining = False
        self._out: list[Buffer] = []
        self._out_bytes = 0
        self._in_flight = 0
        self._paused = False
        self._transport: asyncio.Transport | None = None
        self.listener = listener
        self.id_prefix = listener.id_prefix
        self.packed_advertised = listener.packed_advertised
        self.advertised = listener.advertised
        self.language = Language.OTHER.name
        self.version = 0
        self.closed = False
        self.congested = False
        self.active = True
        """Whether a byte came since the last look; the sweep of idle ones resets it."""
        ip = ipaddress.ip_address(host.partition("%")[0])
        # What a dual-stack socket calls ::ffff:1.2.3.4 is an IPv4 client.
        ip = getattr(ip, "ipv4_mapped", None) or ip
        self.address = host_port.join(str(ip), port)
        self.packed_address = message.pack_host(str(ip), port)

    # -- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(self._limits.write_buffer_bytes)
        self.listener.joined(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came: work on every request that is whole."""
        self.active = True
        try:
            frames = self._reader.feed(data)
            if self._paused or self._backlog:
                self._backlog += frames
            else:
                self._work(frames)
        except FrameError as error:
            self._distrust(error)

    def _work(self, frames: Iterable[RawFrame]) -> None:
        limit = self._limits.requests_in_flight
        rest = iter(frames)
        for serialize_type, header, body in rest:
            envelope = decode_envelope(serialize_type, header)
            if envelope.flag & RESPONSE_FLAG:
                continue
            if not self.version:
                self._introduce(envelope)
            self._in_flight += 1
            dispatch(self._node, self, envelope, body)
            if self._in_flight >= limit or self.congested:
                self._backlog = [*rest]
                self._pause_or_resume()

    def _work_on(self) -> None:
        """Go on with the requests that waited, in a tick of their own."""
        if self.closed or self._paused:
            return
        frames, self._backlog = self._backlog, []
        try:
            self._work(frames)
        except FrameError as error:
            self._distrust(error)

    def _distrust(self, error: FrameError) -> None:
        log.warning("connection closed", client=self.address, reason=str(error))
        self.close()

    def _introduce(self, envelope: Envelope) -> None:
        self.version = envelope.version
        name = envelope.language
        if isinstance(name, int):
            name = Language(name).name if name in set(Language) else str(name)
        self.language = name[:_MAX_LANGUAGE]

    def pause_writing(self) -> None:
        """The client does not take what we send: read nothing more from it."""
        self.congested = True
        self.listener.slow(self)
        self._pause_or_resume()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self.congested = False
        self.listener.caught_up(self)
        self._pause_or_resume()

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection has ended, and what was registered on it."""
        self.closed = True
        self._out.clear()
        self._backlog.clear()
        self.listener.left(self)
        self._node.holds.forget(self)
        self._node.clients.disconnected(self)

    # -- the processors' side

    def respond(self, *data: Buffer) -> None:
        """Send a whole answer at the end of this tick; without data, count only."""
        self._in_flight -= 1
        if data:
            self.push(*data)
        if self._paused:
            self._pause_or_resume()

    def push(self, *data: Buffer) -> None:
        """Send a whole frame at the end of this tick."""
        if self.closed:
            return
        if not self._out:
            self._outbox.add(self)
        self._out += data
        for piece in data:
            self._out_bytes += len(piece)
        if self._out_bytes > _FLUSH_ABOVE:
            self.flush()

    def hold(self) -> None:
        """A request waits; it does not count as being worked on."""
        self._in_flight -= 1
        if self._paused:
            self._pause_or_resume()

    def unhold(self) -> None:
        """A waiting request goes on."""
        self._in_flight += 1

    # -- the server's side

    @property
    def in_flight(self) -> int:
        """Requests being worked on."""
        return self._in_flight

    def flush(self) -> None:
        """Write what has gathered in this tick."""
        out, self._out = self._out, []
        size, self._out_bytes = self._out_bytes, 0
        if self.closed or self._transport is None or not out:
            return
        if len(out) == 1:
            self._transport.write(out[0])
        elif size <= _JOIN_BELOW:
            self._transport.write(b"".join(out))
        else:
            self._transport.writelines(out)

    def drain(self) -> None:
        """Begin no more requests: only those in flight are still answered."""
        self._draining = True
        self._backlog.clear()
        self._pause_or_resume()

    def close(self) -> None:
        """Send what has gathered, then close."""
        if self._transport is not None and not self.closed:
            self.flush()
            self._transport.close()

    def abort(self) -> None:
        """Close at once, whatever is unsent."""
        if self._transport is not None:
            self._transport.abort()

    def _pause_or_resume(self) -> None:
        if self._transport is None or self.closed or self._transport.is_closing():
            return
        limit = self._limits.requests_in_flight
        if self._draining or self.congested or self._in_flight >= limit:
            if not self._paused:
                self._paused = True
                self._transport.pause_reading()
        elif self._paused and self._in_flight <= limit // 2:
            self._paused = False
            self._transport.resume_reading()
            if self._backlog:
                # Not from here: a processor or a log may be in the middle of its work.
                asyncio.get_running_loop().call_soon(self._work_on)
