"""Header blocks as they come: in one frame, or in several that follow each other."""

from __future__ import annotations

from typing import NamedTuple

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode
from ropeway.gateway.http2.frames import (
    END_HEADERS,
    END_STREAM,
    PADDED,
    STREAM_BITS,
    WITH_PRIORITY,
    bare,
    word_of,
)
from ropeway.gateway.http2.headers import Fields, HeaderDecoder

_MOST_BYTES = 128 * 1024
_MOST_FRAMES = 64
"""A block that is longer, or of more frames, ends its connection: as its table is not
known after it, nothing less will do."""
_PRIORITY_BYTES = 5


class Block(NamedTuple):
    """A whole header block."""

    stream_id: int
    fields: Fields
    ends: bool
    """Whether the stream ends with it."""
    depends_on_itself: bool
    """Which a priority must not say (RFC 7540, 5.3.1)."""


class Blocks:
    """Puts the blocks of one connection together, and decodes them."""

    __slots__ = (
        "_decoder",
        "_depends",
        "_ends",
        "_frames",
        "_is_whole",
        "_parts",
        "stream_id",
    )

    def __init__(self) -> None:
        self._decoder = HeaderDecoder()
        self._parts = b""
        self._frames = 0
        self._is_whole = self._ends = self._depends = False
        self.stream_id = 0
        """Whose block is coming; 0: none is."""

    def begin(self, flags: int, stream_id: int, payload: bytes) -> None:
        """HEADERS came.

        Raises:
            ConnectionFault: Not as they should be.
        """
        if flags & PADDED:
            payload = bare(flags, payload)
        self._depends = False
        if flags & WITH_PRIORITY:
            if len(payload) < _PRIORITY_BYTES:
                raise ConnectionFault(
                    ErrorCode.FRAME_SIZE_ERROR, "HEADERS without their priority"
                )
            self._depends = word_of(payload) & STREAM_BITS == stream_id
            payload = payload[_PRIORITY_BYTES:]
        self.stream_id = stream_id
        self._ends = bool(flags & END_STREAM)
        self._is_whole = bool(flags & END_HEADERS)
        self._parts, self._frames = payload, 1

    def go_on(self, flags: int, stream_id: int, payload: bytes) -> None:
        """CONTINUATION came.

        Raises:
            ConnectionFault: Of nothing that has begun, or there is no end to it.
        """
        if not self.stream_id or stream_id != self.stream_id:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR, "CONTINUATION of no header block"
            )
        self._parts += payload
        self._frames += 1
        if len(self._parts) > _MOST_BYTES or self._frames > _MOST_FRAMES:
            raise ConnectionFault(
                ErrorCode.ENHANCE_YOUR_CALM,
                f"header block of {len(self._parts)} bytes in {self._frames} frames; "
                f"allowed: {_MOST_BYTES} in {_MOST_FRAMES}",
            )
        self._is_whole = bool(flags & END_HEADERS)

    def take(self) -> Block | None:
        """The block, if it is whole.

        Raises:
            ConnectionFault: It cannot be decoded.
        """
        if not self._is_whole:
            return None
        stream_id, self.stream_id = self.stream_id, 0
        parts, self._parts = self._parts, b""
        fields = self._decoder.decode(parts)
        return Block(stream_id, fields, self._ends, self._depends)
