"""Frames that say something of a connection, or end a stream, and ask for nothing.

All of them cost a client nothing and us something, so they are counted: see `floods`.

Source: RFC 9113; the numbers in brackets are its sections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode, StreamFault
from ropeway.gateway.http2.frames import (
    ACK,
    GOAWAY,
    PING,
    PING_BYTES,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    STREAM_BITS,
    WINDOW_UPDATE,
    frame,
    word_of,
)
from ropeway.gateway.http2.settings import apply

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.http2.floods import Flood
    from ropeway.gateway.http2.sender import Sender
    from ropeway.gateway.http2.stream import Stream

_WORD_BYTES, _PRIORITY_BYTES = 4, 5
_SMALL_WINDOW_BYTES = 1024
"""Clients widen a window by a part of it, a quarter or more. One that does it a byte at
a time would have each byte sent alone."""
_STREAMS_AT_ONCE = 64
"""Streams whose windows are changed in the time that another frame takes."""


class Receiving(Protocol):
    """The incoming half of a connection; see `receiver.Receiver`."""

    sender: Sender
    streams: dict[int, Stream]
    """Those that have not ended."""
    ended_by_us: dict[int, None]
    """Those that we ended, and whose client may not know it yet."""
    last_id: int
    """The last that has begun."""
    control: Flood
    resets: Flood
    windows: Flood


def on_unknown(receiver: Receiving, _: int, __: int, ___: bytes) -> None:
    """Ignore a frame of a kind that nobody knows (5.5)."""
    receiver.control.count()


def _on_priority(receiver: Receiving, _: int, stream_id: int, payload: bytes) -> None:
    receiver.control.count()
    if not stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY of stream 0")
    if len(payload) != _PRIORITY_BYTES:
        raise StreamFault(stream_id, ErrorCode.FRAME_SIZE_ERROR)
    if word_of(payload) & STREAM_BITS == stream_id:
        raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)


def _on_reset(receiver: Receiving, _: int, stream_id: int, payload: bytes) -> None:
    _check_size("RST_STREAM", payload, _WORD_BYTES)
    _check_known(receiver, "RST_STREAM", stream_id)
    receiver.resets.count()
    # Nothing of it is on its way any more.
    receiver.ended_by_us.pop(stream_id, None)
    stream = receiver.streams.pop(stream_id, None)
    if stream is not None:
        receiver.sender.forget(stream)
        stream.lost()


def _on_settings(
    receiver: Receiving, flags: int, stream_id: int, payload: bytes
) -> None:
    if stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS of a stream")
    if flags & ACK:
        receiver.control.count()
        _check_size("SETTINGS with ACK", payload, 0)
        return
    receiver.control.count(1 + len(receiver.streams) // _STREAMS_AT_ONCE)
    apply(payload, receiver.sender, receiver.streams.values())
    receiver.sender.send(frame(SETTINGS, ACK, 0))


def _on_ping(receiver: Receiving, flags: int, stream_id: int, payload: bytes) -> None:
    _check_size("PING", payload, PING_BYTES)
    if stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PING of a stream")
    if not flags & ACK:
        receiver.control.count()
        receiver.sender.send(frame(PING, ACK, 0, payload))


def _on_goaway(receiver: Receiving, _: int, stream_id: int, __: bytes) -> None:
    # It begins nothing more by itself, and closes when it has its answers.
    receiver.control.count()
    if stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "GOAWAY of a stream")


def _on_window(receiver: Receiving, _: int, stream_id: int, payload: bytes) -> None:
    _check_size("WINDOW_UPDATE", payload, _WORD_BYTES)
    more = word_of(payload) & STREAM_BITS
    stream = receiver.streams.get(stream_id)
    if more < _SMALL_WINDOW_BYTES or (stream_id and stream is None):
        receiver.windows.count()
    if not stream_id:
        if not more:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "window wider by 0")
        receiver.sender.widen(None, more)
        return
    _check_known(receiver, "WINDOW_UPDATE", stream_id)
    if not more:
        raise StreamFault(stream_id, ErrorCode.PROTOCOL_ERROR)
    if stream is not None:
        receiver.sender.widen(stream, more)


def _on_push(_: Receiving, __: int, ___: int, ____: bytes) -> None:
    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE of a client")


def _check_known(receiver: Receiving, what: str, stream_id: int) -> None:
    if not stream_id & 1 or stream_id > receiver.last_id:
        raise ConnectionFault(
            ErrorCode.PROTOCOL_ERROR, f"{what} of stream {stream_id}, which is idle"
        )


def _check_size(what: str, payload: bytes, allowed: int) -> None:
    if len(payload) != allowed:
        raise ConnectionFault(
            ErrorCode.FRAME_SIZE_ERROR,
            f"{what} of {len(payload)} bytes; allowed: {allowed}",
        )


ON_CONTROL: dict[int, Callable[[Receiving, int, int, bytes], None]] = {
    PRIORITY: _on_priority,
    RST_STREAM: _on_reset,
    SETTINGS: _on_settings,
    PUSH_PROMISE: _on_push,
    PING: _on_ping,
    GOAWAY: _on_goaway,
    WINDOW_UPDATE: _on_window,
}
"""What takes a frame, by its kind; its flags, its stream and its payload are given."""
