"""Header blocks (RFC 7541): a client's as fields, and ours as bytes.

Ours use no dynamic table, so the same answer is always the same bytes, made once. Of a
client's, a block that was decoded without changing its table means the same again for
as long as nothing changes the table: that is remembered, by the block's bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpack import Decoder, HPACKError
from hpack.table import HeaderTable

from gateway.http2.errors import ConnectionFault, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIELD_EXTRA = 32
"""What a field counts beside its bytes (RFC 9113, 6.5.2)."""
_BOMB_BYTES = 128 * 1024
"""What a block may decode to at all; a table's entry costs one byte each time."""
_REMEMBERED = 32
_REMEMBERED_BYTES = 4096
_SIZE_UPDATE, _SIZE_UPDATE_BITS = 0x20, 0xE0
_OF_CONNECTIONS = {
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
}
"""What HTTP/2 has other means for, and forbids (8.2.2)."""
_PSEUDO = {":method", ":scheme", ":path", ":authority"}
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


class _Table(HeaderTable):
    """Counts what changes it."""

    changes = 0

    def add(self, name: bytes, value: bytes) -> None:
        self.changes += 1
        super().add(name, value)


class HeaderDecoder:
    """Decodes the blocks of one connection, each once, in the order they come."""

    __slots__ = ("_decoder", "_known", "_table")

    def __init__(self) -> None:
        self._decoder = Decoder(_BOMB_BYTES)
        self._table = self._decoder.header_table = _Table()
        self._known: dict[bytes, Fields] = {}

    def decode(self, block: bytes) -> Fields:
        """The fields of a block.

        Raises:
            ConnectionFault: It is none, so that the tables do not agree any more.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        before = self._table.changes
        try:
            fields = _fields(self._decoder.decode(block, raw=True))
        except (HPACKError, UnicodeDecodeError) as error:
            raise ConnectionFault(
                ErrorCode.COMPRESSION_ERROR, "a header block cannot be decoded"
            ) from error
        resizes = block and block[0] & _SIZE_UPDATE_BITS == _SIZE_UPDATE
        if resizes or self._table.changes != before:
            self._known.clear()
        elif len(block) <= _REMEMBERED_BYTES:
            if len(self._known) == _REMEMBERED:
                self._known.pop(next(iter(self._known)))
            self._known[block] = fields
        return fields


def _fields(pairs: Iterable[tuple[bytes, bytes]]) -> Fields:
    """Fields of a request, or of trailers, and whether they are as they should be."""
    fields = Fields()
    size, malformed, regular = 0, False, False
    for raw_name, raw_value in pairs:
        size += len(raw_name) + len(raw_value) + _FIELD_EXTRA
        # Bytes beyond ASCII are opaque (RFC 9110, 5.5); each is one character.
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name[:1] == ":":
            malformed |= regular or name not in _PSEUDO or name in fields
        else:
            regular = True
            malformed |= not name or name != name.lower() or name in _OF_CONNECTIONS
            malformed |= name == "te" and value != "trailers"
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    fields.size, fields.is_malformed = size, malformed
    return fields


def is_request(fields: Fields) -> bool:
    """Whether a block can begin a request."""
    return (
        not fields.is_malformed and fields.keys() >= _NEEDED and fields[":path"] != ""
    )


def is_trailers(fields: Fields) -> bool:
    """Whether a block can end one."""
    return not fields.is_malformed and not fields.keys() & _PSEUDO


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
