"""Header compression as a server reads it (RFC 7541), with hpack's Huffman code.

A field is made once, when it enters the table: its text, its size and what it is good
for. So a block that mostly points into the table costs little. hpack's own decoder goes
through each field anew, and takes several times as long; tests hold this one to it.
"""

from __future__ import annotations

from collections import deque

from hpack import HPACKError
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode

REGULAR, PSEUDO, WRONG = 0, 1, 2
"""What a field is: HTTP's, HTTP/2's own, or one that no request may have."""

Field = tuple[str, str, int, int]
"""Name, value, size and what it is."""

_TABLE_BYTES = 4096
"""SETTINGS_HEADER_TABLE_SIZE's first, and we say no other."""
_FIELD_EXTRA = 32
"""What a field counts beside its bytes (4.1)."""
_MOST_BYTES = 128 * 1024
"""What a block may decode to at all; an entry costs one byte each time."""
_MOST_SHIFT = 28
"""Integers of more bits end the connection."""
_OF_CONNECTIONS = {
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
    b"upgrade",
}
"""What HTTP/2 has other means for, and forbids (RFC 9113, 8.2.2)."""
_PSEUDO = {b":method", b":scheme", b":path", b":authority"}
_INDEXED, _ADDED, _RESIZED = 0x80, 0x40, 0x20


def _field(name: bytes, value: bytes) -> Field:
    kind = REGULAR
    if name[:1] == b":":
        kind = PSEUDO if name in _PSEUDO else WRONG
    elif (
        not name
        or name != name.lower()
        or name in _OF_CONNECTIONS
        or (name == b"te" and value != b"trailers")
    ):
        kind = WRONG
    # Bytes beyond ASCII are opaque (RFC 9110, 5.5); each is one character.
    return (
        name.decode("latin-1"),
        value.decode("latin-1"),
        len(name) + len(value) + _FIELD_EXTRA,
        kind,
    )


_STATIC = [_field(b"", b""), *(_field(*one) for one in HeaderTable.STATIC_TABLE)]
_FIRST_DYNAMIC = len(_STATIC)


class Decoder:
    """Decodes the blocks of one connection, each once, in the order they come."""

    __slots__ = ("_dynamic", "_most_bytes", "_size", "changes")

    def __init__(self) -> None:
        self._dynamic: deque[Field] = deque()
        self._size = 0
        self._most_bytes = _TABLE_BYTES
        self.changes = 0
        """How often the table was changed."""

    def decode(self, block: bytes) -> list[Field]:
        """The fields of a block.

        Raises:
            ConnectionFault: It is none, so that the tables do not agree any more.
        """
        try:
            return self._decoded(block)
        except (HPACKError, IndexError) as error:
            raise _fault() from error

    def _decoded(self, block: bytes) -> list[Field]:
        fields: list[Field] = []
        at, end, size = 0, len(block), 0
        while at < end:
            first = block[at]
            if first & _INDEXED:
                index = first & 0x7F
                at += 1
                if index == 0x7F:  # noqa: PLR2004 - seven bits
                    index, at = _rest(block, at, index)
                field = self._at(index)
            elif first & (_ADDED | _RESIZED) == _RESIZED:
                if fields:
                    raise _fault()
                at = self._resize(block, at)
                continue
            else:
                field, at = self._literal(block, at, first)
            size += field[2]
            if size > _MOST_BYTES:
                raise _fault()
            fields.append(field)
        return fields

    def _at(self, index: int) -> Field:
        if index >= _FIRST_DYNAMIC:
            return self._dynamic[index - _FIRST_DYNAMIC]
        if not index:
            raise _fault()
        return _STATIC[index]

    def _literal(self, block: bytes, at: int, first: int) -> tuple[Field, int]:
        mask = 0x3F if first & _ADDED else 0x0F
        index = first & mask
        at += 1
        if index == mask:
            index, at = _rest(block, at, index)
        if index:
            name = self._at(index)[0].encode("latin-1")
        else:
            name, at = _text(block, at)
        value, at = _text(block, at)
        field = _field(name, value)
        if first & _ADDED:
            self._add(field)
        return field, at

    def _add(self, field: Field) -> None:
        """Put a field in front; what finds no room leaves, be it the field (4.4)."""
        self.changes += 1
        self._dynamic.appendleft(field)
        self._size += field[2]
        self._shrink()

    def _shrink(self) -> None:
        while self._size > self._most_bytes:
            self._size -= self._dynamic.pop()[2]

    def _resize(self, block: bytes, at: int) -> int:
        mask = _RESIZED - 1
        size = block[at] & mask
        at += 1
        if size == mask:
            size, at = _rest(block, at, size)
        if size > _TABLE_BYTES:
            raise _fault()
        self.changes += 1
        self._most_bytes = size
        self._shrink()
        return at


def _rest(block: bytes, at: int, number: int) -> tuple[int, int]:
    """An integer that its first byte has no room for, and what follows it (5.1)."""
    shift = 0
    while True:
        byte = block[at]
        at += 1
        number += (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more comes
            return number, at
        shift += 7
        if shift > _MOST_SHIFT:
            raise _fault()


def _text(block: bytes, at: int) -> tuple[bytes, int]:
    """A string, and what follows it (5.2)."""
    first = block[at]
    size = first & 0x7F
    at += 1
    if size == 0x7F:  # noqa: PLR2004 - seven bits
        size, at = _rest(block, at, size)
    data = block[at : at + size]
    if len(data) != size:
        raise _fault()
    if first & _INDEXED:
        data = bytes(decode_huffman(data))
    return data, at + size


def _fault() -> ConnectionFault:
    return ConnectionFault(
        ErrorCode.COMPRESSION_ERROR, "a header block cannot be decoded"
    )
