"""One client's connection as a server has it: the rules that hold for all its streams.

Source: RFC 9113; the numbers in brackets are its sections.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, cast

import structlog

from gateway.http2.blocks import Blocks
from gateway.http2.errors import ConnectionFault, ErrorCode, StreamFault
from gateway.http2.floods import Flood
from gateway.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_BITS,
    WINDOW_UPDATE,
    FrameReader,
    bare,
    frame,
    goaway_frame,
    reset_frame,
    settings_frame,
    window_frame,
    word_of,
)
from gateway.http2.headers import is_request, is_trailers
from gateway.http2.sending import FIRST_WINDOW_BYTES, Sender
from gateway.http2.settings import HEADER_LIST, INITIAL_WINDOW, STREAMS, apply
from gateway.http2.stream import WINDOW_BYTES, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.http2.headers import Fields

log = structlog.get_logger(__name__)

_CONNECTION_WINDOW_BYTES = 4 << 20
_WRITE_BUFFER_BYTES = 256 * 1024
_RESETS_KNOWN = 1024
"""Streams that we ended, and whose client may not know it yet."""
_ANSWER_S = 20.0
"""Time for the answer to a ping: gRPC's own default."""
_WORD_BYTES, _PING_BYTES, _PRIORITY_BYTES = 4, 8, 5


class Limits(NamedTuple):
    """What one client may take of its connection."""

    streams: int
    """At a time, those included that it gave up and that are still worked on."""
    fields_bytes: int
    """Of one block, as it is told; longer ones a stream may refuse."""
    keepalive_s: float
    """A client that has said nothing for so long is asked if it is there."""


class Connection(asyncio.Protocol):
    """Speaks HTTP/2 with one client. What is subclassed of it makes the streams.

    Args:
        limits: What the client may take.
    """

    address = ""
    """Where the client is, for the log."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._reader = FrameReader()
        self._blocks = Blocks()
        self._streams: dict[int, Stream] = {}
        self._last_id = 0
        self._ended_by_us: dict[int, None] = {}
        self._room = _CONNECTION_WINDOW_BYTES
        self._unread = 0
        self._is_introduced = False
        self._draining = False
        self._control = Flood("frames that ask for nothing")
        self._resets = Flood("streams given up")
        self._sender = Sender(self.write, self.held, self._sent)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.working = 0
        """Streams that are worked on; a stream counts itself."""
        self.active = True
        """Whether a byte came since the last look."""
        self.closed = False

    # -- what is subclassed

    def stream(self, stream_id: int, window: int) -> Stream:
        """A stream for a request that begins."""
        raise NotImplementedError

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
        ours = {
            STREAMS: self._limits.streams,
            INITIAL_WINDOW: WINDOW_BYTES,
            HEADER_LIST: self._limits.fields_bytes,
        }
        more = _CONNECTION_WINDOW_BYTES - FIRST_WINDOW_BYTES
        self._sender.send(settings_frame(ours) + window_frame(0, more))
        self._look_after(self._limits.keepalive_s, self._look)

    def data_received(self, data: bytes) -> None:
        """Take every frame that is whole."""
        self.active = True
        if self.closed:
            return
        try:
            for one in self._reader.feed(data):
                if self.closed:
                    return
                try:
                    self._take(*one)
                except StreamFault as fault:
                    self._refuse(fault)
        except ConnectionFault as fault:
            self.fail(fault)

    def write(self, data: bytes) -> None:
        """Give bytes to the transport."""
        if self._transport is not None and not self.closed:
            self._transport.write(data)

    def pause_writing(self) -> None:
        """The client does not take what it is sent."""
        self._sender.congested = True
        self.pause_or_resume()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._sender.congested = False
        self._sender.go_on()
        self.pause_or_resume()

    def pause_or_resume(self) -> None:
        """Read from the client, or not, as things are now."""
        if self._transport is None or self.closed or self._transport.is_closing():
            return
        if self._sender.congested or self.holds_back():
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
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            self._sender.forget(stream)
            stream.lost()

    # -- the server's side

    def drain(self) -> None:
        """Let the client begin nothing more here; what is begun goes on."""
        if not self.closed and not self._draining:
            self._draining = True
            # Those are worked on that are on their way (6.8).
            self._sender.send(goaway_frame(STREAM_BITS, ErrorCode.NO_ERROR))

    @property
    def in_flight(self) -> int:
        """Streams that have not ended."""
        return len(self._streams)

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
        self._sender.send(goaway_frame(self._last_id, code, reason))
        self._sender.flush()
        self.closed = True
        self._leave()
        self._transport.close()

    def abort(self) -> None:
        """Close at once, whatever the client has not taken."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def _look_after(self, wait_s: float, look: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(wait_s, look)

    def _look(self) -> None:
        """Ask a client that has been silent whether it is there."""
        if not self.active and not self.holds_back():
            self._sender.send(frame(PING, 0, 0, bytes(_PING_BYTES)))
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

    # -- streams' side

    @property
    def sender(self) -> Sender:
        """Takes what streams answer."""
        return self._sender

    def consumed(self, size: int) -> None:
        """So much of what came needs no memory any more."""
        self._unread += size
        if self._unread >= _CONNECTION_WINDOW_BYTES // 2:
            self._room += self._unread
            self._sender.send(window_frame(0, self._unread))
            self._unread = 0

    def widen(self, stream: Stream, more: int) -> None:
        """More may come on a stream."""
        stream.room += more
        self._sender.send(window_frame(stream.id, more))

    def _sent(self, stream: Stream) -> None:
        """An answer is sent; what its request has still to say is not wanted."""
        self._control.forget()
        if self._streams.pop(stream.id, None) is not None and not stream.ended:
            self._remember(stream.id)
            self._sender.send(reset_frame(stream.id, ErrorCode.NO_ERROR))

    def _remember(self, stream_id: int) -> None:
        if len(self._ended_by_us) == _RESETS_KNOWN:
            del self._ended_by_us[next(iter(self._ended_by_us))]
        self._ended_by_us[stream_id] = None

    def _refuse(self, fault: StreamFault) -> None:
        """End the stream of a client that broke a rule."""
        self._resets.count()
        self._remember(fault.stream_id)
        stream = self._streams.pop(fault.stream_id, None)
        if stream is None:
            self._sender.send(reset_frame(fault.stream_id, fault.code))
            return
        self._sender.reset(stream, fault.code)
        stream.lost()

    # -- frames

    def _take(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        if not self._is_introduced:
            if kind != SETTINGS or flags & ACK:
                raise ConnectionFault(
                    ErrorCode.PROTOCOL_ERROR, f"frame {kind} first; allowed: SETTINGS"
                )
            self._is_introduced = True
        if self._blocks.stream_id and kind != CONTINUATION:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR,
                f"frame {kind} within a header block; allowed: CONTINUATION",
            )
        on = _ON.get(kind)
        if on is not None:
            on(self, flags, stream_id, payload)
        else:
            # Kinds that nobody knows are ignored (5.5).
            self._control.count()

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._room -= size
        if self._room < 0:
            raise ConnectionFault(
                ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the window allows"
            )
        stream = self._streams.get(stream_id)
        if stream is None or stream.ended:
            self.consumed(size)
            self._stray(stream_id)
            return
        stream.room -= size
        if stream.room < 0:
            self.consumed(size)
            raise StreamFault(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
        if flags & PADDED:
            payload = bare(flags, payload)
            stream.consumed(size - len(payload))
        if flags & END_STREAM:
            stream.ended = True
        elif not payload:
            self._control.count()
        if stream.declared >= 0:
            stream.declared -= len(payload)
            if stream.declared < 0 or (stream.ended and stream.declared):
                self.consumed(len(payload))
                raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
        stream.take(payload)

    def _stray(self, stream_id: int) -> None:
        """DATA of a stream that takes none (5.1)."""
        if stream_id > self._last_id or not stream_id & 1:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR, f"DATA of stream {stream_id}, which is idle"
            )
        self._control.count()
        if stream_id not in self._ended_by_us:
            raise StreamFault(stream_id, ErrorCode.STREAM_CLOSED)

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id & 1:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR, f"HEADERS of stream {stream_id}; allowed: odd"
            )
        self._blocks.begin(flags, stream_id, payload)
        self._block_came()

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._blocks.go_on(flags, stream_id, payload)
        self._block_came()

    def _block_came(self) -> None:
        """A header block, or a part of one, is there."""
        block = self._blocks.take()
        if block is None:
            return
        stream = self._streams.get(block.stream_id)
        if block.stream_id > self._last_id:
            self._last_id = block.stream_id
            if block.depends_on_itself:
                raise StreamFault(block.stream_id, ErrorCode.PROTOCOL_ERROR)
            self._request_came(block.stream_id, block.fields, ends=block.ends)
        elif stream is not None and not stream.ended:
            if not block.ends or not is_trailers(block.fields) or stream.declared > 0:
                raise StreamFault(block.stream_id, ErrorCode.PROTOCOL_ERROR)
            stream.ended = True
            stream.take(b"")
        elif stream is not None:
            raise StreamFault(block.stream_id, ErrorCode.STREAM_CLOSED)
        elif block.stream_id not in self._ended_by_us:
            raise ConnectionFault(
                ErrorCode.STREAM_CLOSED,
                f"HEADERS of stream {block.stream_id}, which has ended",
            )

    def _request_came(self, stream_id: int, fields: Fields, *, ends: bool) -> None:
        if not is_request(fields):
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
        if max(self.working, len(self._streams)) >= self._limits.streams:
            raise StreamFault(stream_id, ErrorCode.REFUSED_STREAM)
        stream = self.stream(stream_id, self._sender.first_window)
        stream.ended = ends
        if "content-length" in fields:
            text = fields["content-length"]
            if not text.isdecimal() or (ends and int(text)):
                raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
            stream.declared = int(text)
        self._streams[stream_id] = stream
        stream.begin(fields)

    def _on_priority(self, _: int, stream_id: int, payload: bytes) -> None:
        self._control.count()
        if not stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY of stream 0")
        if len(payload) != _PRIORITY_BYTES:
            raise StreamFault(stream_id, ErrorCode.FRAME_SIZE_ERROR)
        if word_of(payload) & STREAM_BITS == stream_id:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)

    def _on_reset(self, _: int, stream_id: int, payload: bytes) -> None:
        _check_size("RST_STREAM", payload, _WORD_BYTES)
        self._check_known("RST_STREAM", stream_id)
        self._resets.count()
        stream = self._streams.pop(stream_id, None)
        if stream is not None:
            self._sender.forget(stream)
            stream.lost()

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS of a stream")
        self._control.count()
        if flags & ACK:
            _check_size("SETTINGS with ACK", payload, 0)
            return
        apply(payload, self._sender, self._streams.values())
        self._sender.send(frame(SETTINGS, ACK, 0))

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_size("PING", payload, _PING_BYTES)
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PING of a stream")
        if not flags & ACK:
            self._control.count()
            self._sender.send(frame(PING, ACK, 0, payload))

    def _on_goaway(self, _: int, stream_id: int, __: bytes) -> None:
        # It begins nothing more by itself, and closes when it has its answers.
        self._control.count()
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "GOAWAY of a stream")

    def _on_window(self, _: int, stream_id: int, payload: bytes) -> None:
        _check_size("WINDOW_UPDATE", payload, _WORD_BYTES)
        more = word_of(payload) & STREAM_BITS
        if not stream_id:
            if not more:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "window wider by 0")
            self._sender.widen(None, more)
            return
        self._check_known("WINDOW_UPDATE", stream_id)
        if not more:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
        if (stream := self._streams.get(stream_id)) is not None:
            self._sender.widen(stream, more)

    def _on_push(self, _: int, __: int, ___: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE of a client")

    def _check_known(self, what: str, stream_id: int) -> None:
        if not stream_id & 1 or stream_id > self._last_id:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR, f"{what} of stream {stream_id}, which is idle"
            )


def _check_size(what: str, payload: bytes, allowed: int) -> None:
    if len(payload) != allowed:
        raise ConnectionFault(
            ErrorCode.FRAME_SIZE_ERROR,
            f"{what} of {len(payload)} bytes; allowed: {allowed}",
        )


_ON: dict[int, Callable[[Connection, int, int, bytes], None]] = {
    DATA: Connection._on_data,
    HEADERS: Connection._on_headers,
    PRIORITY: Connection._on_priority,
    RST_STREAM: Connection._on_reset,
    SETTINGS: Connection._on_settings,
    PUSH_PROMISE: Connection._on_push,
    PING: Connection._on_ping,
    GOAWAY: Connection._on_goaway,
    WINDOW_UPDATE: Connection._on_window,
    CONTINUATION: Connection._on_continuation,
}
