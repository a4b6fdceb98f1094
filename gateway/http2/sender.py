"""What is sent on a connection: gathered by ticks, and within the client's windows.

While the transport is full, no DATA is given to it, so that it waits in its streams,
where it is counted. Other frames are few: the connection reads nothing meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode, StreamFault
from ropeway.gateway.http2.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    MAX_FRAME_BYTES,
    frame,
    reset_frame,
    whole_answer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ropeway.gateway.http2.stream import Stream

FIRST_WINDOW_BYTES = 65_535
"""Of a connection and of each stream, unless something else is said (6.9.2)."""
MOST_WINDOW_BYTES = (1 << 31) - 1
_FLUSH_ABOVE = 256 * 1024
_TURN_BYTES = 64 * 1024
"""What a stream may send before it is another's turn."""
_ENDING = END_HEADERS | END_STREAM


class Share(Protocol):
    """What a quota leaves to a connection."""

    def charge(self, requests: int, size_bytes: int, /) -> None:
        """It has taken so much more."""


def _drop(_: bytes | int) -> None:
    """Nobody is there to take it."""


class Sender:
    """The outgoing half of a connection.

    Args:
        held: Told by how much more, or less, waits in streams.
    """

    __slots__ = (
        "_blocked",
        "_held",
        "_loop",
        "_out",
        "_out_bytes",
        "_write",
        "congested",
        "first_window",
        "max_frame_bytes",
        "share",
        "window",
    )

    def __init__(self, held: Callable[[int], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._write: Callable[[bytes], object] = _drop
        self._held = held
        self.share: Share | None = None
        """Where a quota counts what is written."""
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._blocked: dict[Stream, None] = {}
        """Streams that wait for the connection; the first has waited for longest."""
        self.congested = False
        """Whether the transport is full."""
        self.window = FIRST_WINDOW_BYTES
        """DATA that the client takes on all streams together."""
        self.first_window = FIRST_WINDOW_BYTES
        """On a new stream."""
        self.max_frame_bytes = MAX_FRAME_BYTES

    def send(self, data: bytes) -> None:
        """Send whole frames at the end of this tick."""
        if not self._out:
            self._loop.call_soon(self.flush)
        self._out.append(data)
        self._out_bytes += len(data)
        if self._out_bytes > _FLUSH_ABOVE:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered."""
        if self._out:
            out, size, self._out, self._out_bytes = self._out, self._out_bytes, [], 0
            if self.share is not None:
                self.share.charge(0, size)
            self._write(out[0] if len(out) == 1 else b"".join(out))

    def open(self, write: Callable[[bytes], object]) -> None:
        """Write to the network, from now on and until it is stopped."""
        self._write = write

    def stop(self) -> None:
        """Write nothing more."""
        self._write = _drop

    def close(self) -> None:
        """Write nothing more, and let go of the connection, which has this."""
        self._write, self._held = _drop, _drop

    def begin(self, stream: Stream, block: bytes) -> None:
        """Send the fields that an answer begins with."""
        self.send(frame(HEADERS, END_HEADERS, stream.id, block))

    def data(self, stream: Stream, data: bytes) -> None:
        """Send DATA, as soon as the windows let it go."""
        size = len(data)
        if self._is_free(stream, size):
            stream.window -= size
            self.window -= size
            self.send(frame(DATA, 0, stream.id, data))
        elif size:
            self._wait(stream, data)
            self._pump(stream)

    def finish(self, stream: Stream, block: bytes) -> None:
        """Send the fields that an answer ends with, after its DATA."""
        stream.finished = True
        if stream.waiting:
            stream.last = block
            return
        self.send(frame(HEADERS, _ENDING, stream.id, block))
        stream.connection.receiver.sent(stream)

    def whole(self, stream: Stream, first: bytes, data: bytes, last: bytes) -> None:
        """Send a whole answer: a block, not empty DATA, and a block."""
        size = len(data)
        if not self._is_free(stream, size):
            self.begin(stream, first)
            self.data(stream, data)
            self.finish(stream, last)
            return
        stream.finished = True
        stream.window -= size
        self.window -= size
        self.send(whole_answer(stream.id, first, data, last))
        stream.connection.receiver.sent(stream)

    def reset(self, stream: Stream, code: ErrorCode) -> None:
        """End a stream before its end."""
        self.forget(stream)
        self.send(reset_frame(stream.id, code))

    def forget(self, stream: Stream) -> None:
        """Nothing is sent any more of what waits in a stream."""
        self._blocked.pop(stream, None)
        if stream.waiting:
            stream.waiting.clear()
            self._count(stream, -stream.waiting_bytes)

    def _is_free(self, stream: Stream, size: int) -> bool:
        return (
            size <= self.window
            and size <= stream.window
            and size <= self.max_frame_bytes
            and not self.congested
            and not stream.waiting
        )

    def _wait(self, stream: Stream, data: bytes) -> None:
        stream.waiting.append(memoryview(data))
        self._count(stream, len(data))

    def _count(self, stream: Stream, change: int) -> None:
        stream.waiting_bytes += change
        if stream.counts:
            self._held(change)

    def _pump(self, stream: Stream, most: int = MOST_WINDOW_BYTES) -> None:
        """Send of what waits in a stream as much as may go, or as is its turn."""
        sent = 0
        while stream.waiting and not self.congested and sent < most:
            size = min(self.window, stream.window, self.max_frame_bytes)
            if size <= 0:
                break
            first = stream.waiting[0]
            part = first[:size]
            if len(part) == len(first):
                stream.waiting.popleft()
            else:
                stream.waiting[0] = first[size:]
            stream.window -= len(part)
            self.window -= len(part)
            sent += len(part)
            self.send(frame(DATA, 0, stream.id, bytes(part)))
        self._pumped(stream, sent)

    def _pumped(self, stream: Stream, sent: int) -> None:
        if sent:
            self._count(stream, -sent)
        if stream.waiting:
            if stream.window > 0:
                self._blocked[stream] = None
            return
        if sent:
            stream.moved()
        if stream.last is not None and stream.finished:
            block, stream.last = stream.last, None
            self.finish(stream, block)

    def go_on(self) -> None:
        """Let streams send that waited for the connection, by turns."""
        while self._blocked and self.window > 0 and not self.congested:
            stream = next(iter(self._blocked))
            del self._blocked[stream]
            self._pump(stream, _TURN_BYTES)

    # -- what the client says of its windows

    def widen(self, stream: Stream | None, more: int) -> None:
        """The client takes more: of a stream, or of all.

        Raises:
            StreamFault: A stream's window is wider than allowed.
            ConnectionFault: Or the connection's.
        """
        if stream is None:
            self.window += more
            if self.window > MOST_WINDOW_BYTES:
                raise ConnectionFault(
                    ErrorCode.FLOW_CONTROL_ERROR, "window of more than 2^31-1 bytes"
                )
            self.go_on()
            return
        stream.window += more
        if stream.window > MOST_WINDOW_BYTES:
            raise StreamFault(stream.id, ErrorCode.FLOW_CONTROL_ERROR)
        if stream.waiting:
            self._pump(stream)

    def set_first_window(self, size: int, streams: Iterable[Stream]) -> None:
        """New streams have that window, and those that are there are changed by it.

        Raises:
            ConnectionFault: One becomes wider than allowed.
        """
        change, self.first_window = size - self.first_window, size
        for stream in list(streams):
            stream.window += change
            if stream.window > MOST_WINDOW_BYTES:
                raise ConnectionFault(
                    ErrorCode.FLOW_CONTROL_ERROR, "window of more than 2^31-1 bytes"
                )
            if stream.waiting:
                self._pump(stream)
