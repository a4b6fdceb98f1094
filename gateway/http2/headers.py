"""Header blocks: a client's as fields, and ours as bytes.

Ours use no dynamic table, so the same answer is always the same bytes, made once. Of a
client's, a block that was decoded without changing its table means the same again for
as long as nothing changes the table: that is remembered, by the block's bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.http2.hpack_decoder import REGULAR, WRONG, Decoder, Field

if TYPE_CHECKING:
    from collections.abc import Iterable

_REMEMBERED = 32
_REMEMBERED_BYTES = 4096
_NEEDED = {":method", ":scheme", ":path"}
_TEXT_PREFIX = 0x7F


class Fields(dict[str, str]):
    """The fields of one block; of those that came twice the values, by commas.

    Must not be changed: it is given out for each block of the same bytes.
    """

    __slots__ = ("is_malformed", "size")

    size: int
    """As SETTINGS_MAX_HEADER_LIST_SIZE counts it."""
    is_malformed: bool
    """Whether a rule for requests is broken (8.1.1)."""


class HeaderDecoder:
    """Decodes the blocks of one connection, each once, in the order they come."""

    __slots__ = ("_decoder", "_known")

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._known: dict[bytes, Fields] = {}

    def decode(self, block: bytes) -> Fields:
        """The fields of a block.

        Raises:
            ConnectionFault: It is none, so that the tables do not agree any more.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        before = self._decoder.changes
        fields = _fields(self._decoder.decode(block))
        if self._decoder.changes != before:
            self._known.clear()
        elif len(block) <= _REMEMBERED_BYTES:
            if len(self._known) == _REMEMBERED:
                self._known.pop(next(iter(self._known)))
            self._known[block] = fields
        return fields


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
    fields.size, fields.is_malformed = total, malformed
    return fields


def is_request(fields: Fields) -> bool:
    """Whether a block can begin a request."""
    return (
        not fields.is_malformed and fields.keys() >= _NEEDED and fields[":path"] != ""
    )


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
