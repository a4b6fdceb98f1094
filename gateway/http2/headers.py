"""Header blocks: put together of frames, a client's as fields, and ours as bytes.

Ours use no dynamic table, so the same answer is always the same bytes, made once. Of a
client's, a block that was decoded without changing its table means the same again for
as long as nothing changes the table: that is remembered, by the block's bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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
from ropeway.gateway.http2.hpack_decoder import REGULAR, WRONG, Decoder, Field

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_BYTES = 128 * 1024
_MOST_FRAMES = 64
"""A block that is longer, or of more frames, ends its connection: as its table is not
known after it, nothing less will do."""
_PRIORITY_BYTES = 5
_REMEMBERED = 32
_REMEMBERED_BYTES = 4096
_NEEDED = {":method", ":scheme", ":path"}
_TEXT_PREFIX = 0x7F


class Fields(dict[str, str]):
    """The fields of one block; of those that came twice the values, by commas.

    Must not be changed: it is given out for each block of the same bytes.
    """

    __slots__ = ("is_malformed", "is_request", "said", "size")

    size: int
    """As SETTINGS_MAX_HEADER_LIST_SIZE counts it."""
    is_malformed: bool
    """Whether a rule for requests is broken (8.1.1)."""
    is_request: bool
    """Whether they can begin a request."""
    said: Any
    """What who serves it has read in it, once for all blocks of these bytes."""


def _fields(found: Iterable[Field]) -> Fields:
    """Fields of a request, or of trailers, and whether they are as they should be."""
    fields = Fields()
    total, malformed, regular = 0, False, False
    for name, value, size, kind in found:
        total += size
        is_double = name in fields
        if kind == REGULAR:
            regular = True
        elif kind == WRONG or regular or is_double:
            malformed = True
        fields[name] = f"{fields[name]},{value}" if is_double else value
    fields.size, fields.is_malformed, fields.said = total, malformed, None
    fields.is_request = (
        not malformed and fields.keys() >= _NEEDED and fields[":path"] != ""
    )
    return fields


class Block(NamedTuple):
    """A whole header block."""

    stream_id: int
    fields: Fields
    ends: bool
    """Whether the stream ends with it."""
    depends_on_itself: bool
    """Which a priority must not say (RFC 7540, 5.3.1)."""


class Blocks:
    """Puts the blocks of one connection together, and decodes them in their order."""

    __slots__ = (
        *("_decoder", "_depends", "_ends", "_frames", "_known", "_parts", "stream_id"),
    )

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._known: dict[bytes, Fields] = {}
        """Blocks that changed no table, and none has changed since."""
        self._parts = b""
        self._frames = 0
        self._ends = self._depends = False
        self.stream_id = 0
        """Whose block is coming; 0: none is."""

    def begin(self, flags: int, stream_id: int, payload: bytes) -> Block | None:
        """HEADERS came: the block, if that is all of it.

        Raises:
            ConnectionFault: Not as they should be, or they cannot be decoded.
        """
        if flags & PADDED:
            payload = bare(flags, payload)
        depends = False
        if flags & WITH_PRIORITY:
            if len(payload) < _PRIORITY_BYTES:
                raise ConnectionFault(
                    ErrorCode.FRAME_SIZE_ERROR, "HEADERS without their priority"
                )
            depends = word_of(payload) & STREAM_BITS == stream_id
            payload = payload[_PRIORITY_BYTES:]
        ends = bool(flags & END_STREAM)
        if flags & END_HEADERS:
            fields = self._known.get(payload) or self.decode(payload)
            return Block(stream_id, fields, ends, depends)
        self.stream_id = stream_id
        self._ends, self._depends = ends, depends
        self._parts, self._frames = payload, 1
        return None

    def go_on(self, flags: int, stream_id: int, payload: bytes) -> Block | None:
        """CONTINUATION came: the block, if that was the last part.

        Raises:
            ConnectionFault: Of nothing that has begun, or there is no end to it, or it
                cannot be decoded.
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
        if not flags & END_HEADERS:
            return None
        self.stream_id = 0
        parts, self._parts = self._parts, b""
        return Block(stream_id, self.decode(parts), self._ends, self._depends)

    def decode(self, block: bytes) -> Fields:
        """The fields of a block, which is remembered if it can mean the same again.

        Raises:
            ConnectionFault: It is none, so that the tables do not agree any more.
        """
        before = self._decoder.changes
        fields = _fields(self._decoder.decode(block))
        if self._decoder.changes != before:
            self._known.clear()
        elif len(block) <= _REMEMBERED_BYTES:
            if len(self._known) == _REMEMBERED:
                self._known.pop(next(iter(self._known)))
            self._known[block] = fields
        return fields


def is_trailers(fields: Fields) -> bool:
    """Whether a block can end one."""
    return not fields.is_malformed and not any(name[:1] == ":" for name in fields)


def encode(fields: Iterable[tuple[str, str]]) -> bytes:
    """A block of literals that no table keeps (RFC 7541, 6.2.2)."""
    return b"".join(
        b"\0" + _text(name.encode()) + _text(value.encode()) for name, value in fields
    )


def _text(data: bytes) -> bytes:
    """A string without Huffman's code (RFC 7541, 5.1 and 5.2)."""
    size = len(data)
    if size < _TEXT_PREFIX:
        return bytes([size]) + data
    rest, made = size - _TEXT_PREFIX, bytearray([_TEXT_PREFIX])
    while rest >= 0x80:  # noqa: PLR2004 - seven bits a byte
        made.append(rest & 0x7F | 0x80)
        rest >>= 7
    made.append(rest)
    return bytes(made) + data
