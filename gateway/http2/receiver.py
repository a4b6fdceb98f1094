"""What comes on a connection: frames, and the rules that hold for all its streams.

Source: RFC 9113; the numbers in brackets are its sections.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, ClassVar, NamedTuple, NoReturn

from ropeway.gateway.http2.control_frames import ON_CONTROL, on_unknown
from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode, StreamFault
from ropeway.gateway.http2.floods import MOST, Flood
from ropeway.gateway.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_STREAM,
    HEADERS,
    PADDED,
    SETTINGS,
    FrameReader,
    bare,
    reset_frame,
    window_frame,
)
from ropeway.gateway.http2.headers import Blocks, is_trailers
from ropeway.gateway.http2.stream import WINDOW_BYTES, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.http2.frames import Frame
    from ropeway.gateway.http2.headers import Block
    from ropeway.gateway.http2.sender import Sender

CONNECTION_WINDOW_BYTES = 4 << 20
"""DATA that may come on all streams, of which that is kept."""
_NARROW, _STREAM_NARROW = CONNECTION_WINDOW_BYTES // 2, WINDOW_BYTES // 2
_RESETS_KNOWN = 1024
"""Streams that we ended, and whose client may not know it yet."""
_LENGTH_DIGITS = 18
"""Of a content-length: far more than may come, and quickly read."""


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
        fail: Ends the connection of a client that broke a rule.
    """

    def __init__(
        self,
        limits: Limits,
        make: Callable[[int, int], Stream],
        sender: Sender,
        fail: Callable[[ConnectionFault], None],
    ) -> None:
        self._limits = limits
        self._make, self._fail = make, fail
        self.sender = sender
        self._reader = FrameReader()
        self.frames: deque[Frame] = deque()
        """Those that wait to be taken."""
        self._blocks = Blocks()
        self.ended_by_us: dict[int, None] = {}
        self._room, self._kept = CONNECTION_WINDOW_BYTES, 0
        self.until = math.inf
        """When taking frames is over; the earlier, the longer what is begun takes."""
        self._is_introduced = False
        self.control = Flood("frames that ask for nothing")
        self.resets = Flood("streams given up")
        self.windows = Flood("windows that become hardly wider")
        self.streams: dict[int, Stream] = {}
        """Those that have not ended."""
        self.last_id = 0
        """The last that has begun."""
        self.working = 0
        """How many are worked on; a stream counts itself."""
        self.closed = False

    def feed(self, data: bytes, until: float = math.inf) -> int:
        """Take frames that are whole with these bytes, and those that wait; how many.

        Args:
            data: What came; nothing to go on with what waits.
            until: By the monotonic clock, less what is owed; what is left then waits.
        """
        if self.closed:
            return 0
        frames, taken, monotonic, self.until = self.frames, 0, time.monotonic, until
        try:
            frames.extend(self._reader.feed(data))
            while frames and not self.closed:
                taken += 1
                kind, flags, stream_id, payload = frames.popleft()
                if self._blocks.stream_id or not self._is_introduced:
                    self._check_order(kind, flags)
                on = self._BY_KIND.get(kind, on_unknown)
                try:
                    on(self, flags, stream_id, payload)
                except StreamFault as fault:
                    self._refuse(fault)
                if monotonic() > self.until:
                    break
        except ConnectionFault as fault:
            self._fail(fault)
        return taken

    def close(self) -> None:
        """Take nothing more; every stream is lost."""
        self.closed = True
        # They know the connection, which has this.
        self._make, self._fail = _gone, _gone
        self.frames.clear()
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            self.sender.forget(stream)
            stream.lost()

    # -- streams' side

    def keep(self, size: int, stream: Stream) -> None:
        """So much of what came on a stream is kept, until it is consumed."""
        stream.kept += size
        self._kept += size

    def consumed(self, stream: Stream) -> None:
        """What a stream kept needs no memory any more."""
        self._kept -= stream.kept
        stream.kept = 0
        self._widen(stream)

    def _widen(self, stream: Stream | None = None) -> None:
        """Let more come where half of a window was used by what nobody keeps."""
        used = CONNECTION_WINDOW_BYTES - self._room - self._kept
        if used >= CONNECTION_WINDOW_BYTES // 2:
            self._room += used
            self.sender.send(window_frame(0, used))
        if stream is None or stream.ended:
            return
        used = WINDOW_BYTES - stream.room - stream.kept
        if used >= WINDOW_BYTES // 2:
            stream.room += used
            self.sender.send(window_frame(stream.id, used))

    def sent(self, stream: Stream) -> None:
        """An answer is sent; what its request has still to say is not wanted."""
        # The client has done something useful.
        self.control.left = self.windows.left = MOST
        if self.streams.pop(stream.id, None) is not None and not stream.ended:
            self._remember(stream.id)
            self.sender.send(reset_frame(stream.id, ErrorCode.NO_ERROR))

    def give_up(self, stream: Stream, code: ErrorCode) -> None:
        """End a stream before its end; whoever serves it knows."""
        self._remember(stream.id)
        self.streams.pop(stream.id, None)
        self.sender.reset(stream, code)

    def _remember(self, stream_id: int) -> None:
        if len(self.ended_by_us) == _RESETS_KNOWN:
            del self.ended_by_us[next(iter(self.ended_by_us))]
        self.ended_by_us[stream_id] = None

    def _refuse(self, fault: StreamFault) -> None:
        """End the stream of a client that broke a rule."""
        self.resets.count()
        self._remember(fault.stream_id)
        stream = self.streams.pop(fault.stream_id, None)
        if stream is None:
            self.sender.send(reset_frame(fault.stream_id, fault.code))
            return
        self.sender.reset(stream, fault.code)
        stream.lost()

    # -- frames

    def _check_order(self, kind: int, flags: int) -> None:
        """SETTINGS come first, and nothing comes between the parts of a block."""
        if not self._is_introduced:
            if kind != SETTINGS or flags & ACK:
                raise ConnectionFault(
                    ErrorCode.PROTOCOL_ERROR, f"frame {kind} first; allowed: SETTINGS"
                )
            self._is_introduced = True
        elif kind != CONTINUATION:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR,
                f"frame {kind} within a header block; allowed: CONTINUATION",
            )

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._room -= size
        if self._room < 0:
            raise ConnectionFault(
                ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the window allows"
            )
        stream = self.streams.get(stream_id)
        if stream is None or stream.ended:
            self._widen()
            self._stray(stream_id)
            return
        stream.room -= size
        if stream.room < 0:
            self._widen()
            raise StreamFault(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
        if flags & PADDED:
            payload = bare(flags, payload)
        if flags & END_STREAM:
            stream.ended = True
        elif not payload:
            self.control.count()
        if stream.declared >= 0:
            stream.declared -= len(payload)
            if stream.declared < 0 or (stream.ended and stream.declared):
                self._widen()
                raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
        stream.take(payload)
        if self._room <= _NARROW or stream.room <= _STREAM_NARROW:
            self._widen(stream)

    def _stray(self, stream_id: int) -> None:
        """DATA of a stream that takes none (5.1)."""
        if stream_id > self.last_id or not stream_id & 1:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR, f"DATA of stream {stream_id}, which is idle"
            )
        self.control.count()
        if stream_id not in self.ended_by_us:
            raise StreamFault(stream_id, ErrorCode.STREAM_CLOSED)

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id & 1:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR, f"HEADERS of stream {stream_id}; allowed: odd"
            )
        if block := self._blocks.begin(flags, stream_id, payload):
            (self._request if stream_id > self.last_id else self._trailers)(block)

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        if block := self._blocks.go_on(flags, stream_id, payload):
            (self._request if stream_id > self.last_id else self._trailers)(block)

    def _trailers(self, block: Block) -> None:
        """The header block of a stream that has begun is there."""
        stream = self.streams.get(block.stream_id)
        if stream is not None and not stream.ended:
            if not block.ends or not is_trailers(block.fields) or stream.declared > 0:
                raise StreamFault(block.stream_id, ErrorCode.PROTOCOL_ERROR)
            stream.ended = True
            stream.take(b"")
        elif stream is not None:
            raise StreamFault(block.stream_id, ErrorCode.STREAM_CLOSED)
        elif block.stream_id not in self.ended_by_us:
            ended = f"HEADERS of stream {block.stream_id}, which has ended"
            raise ConnectionFault(ErrorCode.STREAM_CLOSED, ended)

    def _request(self, block: Block) -> None:
        """A header block that begins a stream is there."""
        stream_id, fields, ends, depends_on_itself = block
        self.last_id = stream_id
        if depends_on_itself or not fields.is_request:
            raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
        if max(self.working, len(self.streams)) >= self._limits.streams:
            raise StreamFault(stream_id, ErrorCode.REFUSED_STREAM)
        stream = self._make(stream_id, self.sender.first_window)
        stream.ended = ends
        if "content-length" in fields:
            text = fields["content-length"]
            is_short = len(text) <= _LENGTH_DIGITS and text.isascii()
            if not is_short or not text.isdecimal() or (ends and int(text)):
                raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
            stream.declared = int(text)
        self.streams[stream_id] = stream
        stream.begin(fields)

    _BY_KIND: ClassVar[dict[int, Callable[[Receiver, int, int, bytes], None]]] = {
        **ON_CONTROL,
        DATA: _on_data,
        HEADERS: _on_headers,
        CONTINUATION: _on_continuation,
    }


def _gone(*_: object) -> NoReturn:
    raise AssertionError("a connection that has ended takes frames")
