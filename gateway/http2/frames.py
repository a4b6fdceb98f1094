"""Frames as bytes (RFC 9113, 4.1): reading them, wherever cut, and making them.

0        3      4       5           9
+--------+------+-------+-----------+---------+
| length | kind | flags | stream id | payload |
+--------+------+-------+-----------+---------+
"""

from __future__ import annotations

import struct

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What every client begins with (3.4)."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9

ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8
WITH_PRIORITY = 0x20

MAX_FRAME_BYTES = 1 << 14
"""What every receiver takes, and we take no more: SETTINGS_MAX_FRAME_SIZE's first."""
STREAM_BITS = (1 << 31) - 1
PING_BYTES = 8

_HEAD = struct.Struct(">BHBBI")
HEAD_BYTES = _HEAD.size
_WORD = struct.Struct(">I")
_SETTING = struct.Struct(">HI")

Frame = tuple[int, int, int, bytes]
"""Kind, flags, stream id and payload."""


class FrameReader:
    """Takes the bytes of one client apart."""

    __slots__ = ("_begun", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> list[Frame]:
        """Every frame that is whole with these bytes.

        Raises:
            ConnectionFault: They are not HTTP/2, or a frame is too long. Frames before
                it are lost, as the connection is.
        """
        if self._rest:
            data = self._rest + data
        at, end = 0, len(data)
        if not self._begun:
            if data[: len(PREFACE)] != PREFACE[:end]:
                raise ConnectionFault(
                    ErrorCode.PROTOCOL_ERROR, "no HTTP/2; allowed: its preface first"
                )
            if end < len(PREFACE):
                self._rest = data
                return []
            self._begun, at = True, len(PREFACE)
        frames: list[Frame] = []
        while end - at >= HEAD_BYTES:
            high, low, kind, flags, stream_id = _HEAD.unpack_from(data, at)
            size = high << 16 | low
            if size > MAX_FRAME_BYTES:
                raise ConnectionFault(
                    ErrorCode.FRAME_SIZE_ERROR,
                    f"frame of {size} bytes; allowed: {MAX_FRAME_BYTES}",
                )
            begin = at + HEAD_BYTES
            if begin + size > end:
                break
            at = begin + size
            frames.append((kind, flags, stream_id & STREAM_BITS, data[begin:at]))
        self._rest = data[at:]
        return frames


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """A frame."""
    size = len(payload)
    return _HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, stream_id) + payload


def whole_answer(stream_id: int, first: bytes, data: bytes, last: bytes) -> bytes:
    """A stream's answer: a block, DATA of one frame, and a block, of one frame each."""
    pack, size = _HEAD.pack, len(data)
    return b"".join(
        (
            pack(0, len(first), HEADERS, END_HEADERS, stream_id),
            first,
            pack(size >> 16, size & 0xFFFF, DATA, 0, stream_id),
            data,
            pack(0, len(last), HEADERS, END_HEADERS | END_STREAM, stream_id),
            last,
        )
    )


def settings_frame(values: dict[int, int]) -> bytes:
    """What we tell of ourselves."""
    payload = b"".join(_SETTING.pack(*item) for item in values.items())
    return frame(SETTINGS, 0, 0, payload)


def settings_of(payload: bytes) -> list[tuple[int, int]]:
    """What a client tells of itself, in its order; the length must be right."""
    return list(_SETTING.iter_unpack(payload))


def window_frame(stream_id: int, more: int) -> bytes:
    """The client may send more bytes of DATA."""
    return frame(WINDOW_UPDATE, 0, stream_id, _WORD.pack(more))


def reset_frame(stream_id: int, code: int) -> bytes:
    """A stream has ended before its end."""
    return frame(RST_STREAM, 0, stream_id, _WORD.pack(code))


def goaway_frame(last_id: int, code: int, reason: str = "") -> bytes:
    """No stream after the last is worked on."""
    payload = _WORD.pack(last_id) + _WORD.pack(code) + reason.encode()
    return frame(GOAWAY, 0, 0, payload)


def word_of(payload: bytes) -> int:
    """The number that some frames consist of."""
    return int.from_bytes(payload[:4], "big")


def bare(flags: int, payload: bytes) -> bytes:
    """A payload without its padding (6.1).

    Raises:
        ConnectionFault: There is more padding than payload.
    """
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - payload[0]]
