"""What comes on a connection: frames, and the rules that hold for all its streams.

Source: RFC 9113; the numbers in brackets are its sections.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ropeway.gateway.http2.blocks import Blocks
from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode, StreamFault
from ropeway.gateway.http2.floods import Flood
from ropeway.gateway.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PING_BYTES,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_BITS,
    WINDOW_UPDATE,
    FrameReader,
    bare,
    frame,
    reset_frame,
    window_frame,
    word_of,
)
from ropeway.gateway.http2.headers import is_request, is_trailers
from ropeway.gateway.http2.settings import apply

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.http2.frames import Frame
    from ropeway.gateway.http2.headers import Fields
    from ropeway.gateway.http2.sender import Sender
    from ropeway.gateway.http2.stream import Stream

CONNECTION_WINDOW_BYTES = 4 << 20
"""DATA that may come on all streams before it was consumed."""
_RESETS_KNOWN = 1024
"""Streams that we ended, and whose client may not know it yet."""
_WORD_BYTES, _PRIORITY_BYTES = 4, 5
_LENGTH_DIGITS = 18
"""Of a content-length: far more than may come, and quickly read."""
_SMALL_WINDOW_BYTES = 1024
"""Clients widen a window by a part of it, a quarter or more. One that does it a byte at
a time would have each byte sent alone."""
_STREAMS_AT_ONCE = 64
"""Streams whose windows are changed in the time that another frame takes."""


class Limits(NamedTuple):
    """What one client may take of its connection."""

    streams: int
    """At a time, those included that it gave up and that are still worked on."""
    fields_bytes: int
    """Of one block, as it is told; longer ones a stream may refuse."""
    keepalive_s: float
    """A client that has said nothing for so long is asked if it is there."""


class Receiver:
    """The incoming half of a connection.

    Args:
        limits: What the client may take.
        make: Makes a stream of a number and a window.
        sender: The other half.
    """

    def __init__(
        self, limits: Limits, make: Callable[[int, int], Stream], sender: Sender
    ) -> None:
        self._limits = limits
        self._make = make
        self._sender = sender
        self._reader = FrameReader()
        self._frames: deque[Frame] = deque()
        self._blocks = Blocks()
        self._ended_by_us: dict[int, None] = {}
        self._room = CONNECTION_WINDOW_BYTES
        self._unread, self._until = 0, math.inf
        self._is_introduced = False
        self._control = Flood("frames that ask for nothing")
        self._resets = Flood("streams given up")
        self._windows = Flood("windows that become hardly wider")
        self.streams: dict[int, Stream] = {}
        """Those that have not ended."""
        self.last_id = 0
        """The last that has begun."""
        self.working = 0
        """How many are worked on; a stream counts itself."""
        self.closed = False

    def feed(self, data: bytes, until: float = math.inf) -> int:
        """Take frames that are whole with these bytes, and those that wait, in order.

        Args:
            data: What came; nothing to go on with what waits.
            until: By the monotonic clock, less what is owed; what is left then waits.

        Returns:
            How many were taken.

        Raises:
            ConnectionFault: The connection cannot go on.
        """
        frames, taken, monotonic = self._frames, 0, time.monotonic
        self._until = until
        frames.extend(self._reader.feed(data))
        while frames and not self.closed:
            taken += 1
            try:
                self._take(*frames.popleft())
            except StreamFault as fault:
                self._refuse(fault)
            if monotonic() > self._until:
                break
        return taken

    def owe(self, seconds: float) -> None:
        """What was taken will take so long when this is over."""
        self._until -= seconds

    @property
    def waits(self) -> bool:
        """Whether frames wait to be taken."""
        return bool(self._frames)

    def close(self) -> None:
        """Take nothing more; every stream is lost."""
        self.closed = True
        self._frames.clear()
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            self._sender.forget(stream)
            stream.lost()

    # -- streams' side

    def consumed(self, size: int) -> None:
        """So much of what came needs no memory any more."""
        self._unread += size
        if self._unread >= CONNECTION_WINDOW_BYTES // 2:
            self._room += self._unread
            self._sender.send(window_frame(0, self._unread))
            self._unread = 0

    def widen(self, stream: Stream, more: int) -> None:
        """More may come on a stream."""
        stream.room += more
        self._sender.send(window_frame(stream.id, more))

    def sent(self, stream: Stream) -> None:
        """An answer is sent; what its request has still to say is not wanted."""
        self._control.forget()
        self._windows.forget()
        if self.streams.pop(stream.id, None) is not None and not stream.ended:
            self._remember(stream.id)
            self._sender.send(reset_frame(stream.id, ErrorCode.NO_ERROR))

    def give_up(self, stream: Stream, code: ErrorCode) -> None:
        """End a stream before its end; whoever serves it knows."""
        self._remember(stream.id)
        self.streams.pop(stream.id, None)
        self._sender.reset(stream, code)

    def _remember(self, stream_id: int) -> None:
        if len(self._ended_by_us) == _RESETS_KNOWN:
            del self._ended_by_us[next(iter(self._ended_by_us))]
        self._ended_by_us[stream_id] = None

    def _refuse(self, fault: StreamFault) -> None:
        """End the stream of a client that broke a rule."""
        self._resets.count()
        self._remember(fault.stream_id)
        stream = self.streams.pop(fault.stream_id, None)
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
        on = self._BY_KIND.get(kind)
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
        stream = self.streams.get(stream_id)
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
        if stream_id > self.last_id or not stream_id & 1:
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
        stream = self.streams.get(block.stream_id)
        if block.stream_id > self.last_id:
            self.last_id = block.stream_id
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
        if max(self.working, len(self.streams)) >= self._limits.streams:
            raise StreamFault(stream_id, ErrorCode.REFUSED_STREAM)
        stream = self._make(stream_id, self._sender.first_window)
        stream.ended = ends
        if "content-length" in fields:
            text = fields["content-length"]
            is_short = len(text) <= _LENGTH_DIGITS and text.isascii()
            if not is_short or not text.isdecimal() or (ends and int(text)):
                raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
            stream.declared = int(text)
        self.streams[stream_id] = stream
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
        # Nothing of it is on its way any more.
        self._ended_by_us.pop(stream_id, None)
        stream = self.streams.pop(stream_id, None)
        if stream is not None:
            self._sender.forget(stream)
            stream.lost()

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS of a stream")
        if flags & ACK:
            self._control.count()
            _check_size("SETTINGS with ACK", payload, 0)
            return
        self._control.count(1 + len(self.streams) // _STREAMS_AT_ONCE)
        apply(payload, self._sender, self.streams.values())
        self._sender.send(frame(SETTINGS, ACK, 0))

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        _check_size("PING", payload, PING_BYTES)
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
        stream = self.streams.get(stream_id)
        if more < _SMALL_WINDOW_BYTES or (stream_id and stream is None):
            self._windows.count()
        if not stream_id:
            if not more:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "window wider by 0")
            self._sender.widen(None, more)
            return
        self._check_known("WINDOW_UPDATE", stream_id)
        if not more:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
        if stream is not None:
            self._sender.widen(stream, more)

    def _on_push(self, _: int, __: int, ___: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE of a client")

    def _check_known(self, what: str, stream_id: int) -> None:
        if not stream_id & 1 or stream_id > self.last_id:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR, f"{what} of stream {stream_id}, which is idle"
            )

    _BY_KIND: ClassVar[dict[int, Callable[[Receiver, int, int, bytes], None]]] = {
        DATA: _on_data,
        HEADERS: _on_headers,
        PRIORITY: _on_priority,
        RST_STREAM: _on_reset,
        SETTINGS: _on_settings,
        PUSH_PROMISE: _on_push,
        PING: _on_ping,
        GOAWAY: _on_goaway,
        WINDOW_UPDATE: _on_window,
        CONTINUATION: _on_continuation,
    }


def _check_size(what: str, payload: bytes, allowed: int) -> None:
    if len(payload) != allowed:
        raise ConnectionFault(
            ErrorCode.FRAME_SIZE_ERROR,
            f"{what} of {len(payload)} bytes; allowed: {allowed}",
        )
