"""Protocol Buffers, as far as Pulsar's commands need it; no I/O.

A message is a frozen struct whose annotations hold the field numbers:

    class MessageId(Message, frozen=True):
        ledger: Annotated[int, 1]
        entry: Annotated[int, 2]
        partition: Annotated[int, 3] = -1

A field without a default is required. A field that has its default is not written, so
the defaults must be those of PulsarApi.proto (None where that has none).
Integers are read as signed, 64 bits: Pulsar sends -1 in fields declared unsigned.
Source: protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Callable
from functools import lru_cache
from types import NoneType
from typing import Any, Self, get_args, get_origin, get_type_hints

import msgspec

from ropeway.storage.pulsar.errors import WireError

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
VARINT_BYTES = 10
SIGN = 1 << 63
WORD = 1 << 64

Read = Callable[[bytes, int, int], tuple[Any, int]]
Write = Callable[[Any], bytes]


class Message(msgspec.Struct, frozen=True):
    """A message; its subclass says which fields it has."""

    @classmethod
    def decode(cls, data: bytes, at: int = 0, end: int | None = None) -> Self:
        """Read a message that fills `data` between `at` and `end`.

        Raises:
            WireError: the bytes are not such a message, or lack a required field.
        """
        table = _table(cls)
        end = len(data) if end is None else end
        values = table.defaults.copy()
        by_tag = table.by_tag
        while at < end:
            tag = data[at]
            if tag < 128:  # noqa: PLR2004 - one byte: fields 1 to 15
                at += 1
            else:
                tag, at = read_varint(data, at, end)
            field = by_tag.get(tag)
            if field is None:
                at = _skip(data, at, end, tag)
                continue
            index, read, repeated = field
            value, at = read(data, at, end)
            values[index] = (*values[index], value) if repeated else value
        for index in table.required:
            if values[index] is _MISSING:
                name = cls.__struct_fields__[index]
                raise WireError(f"{cls.__name__} without {name}")
        return cls(*values)

    def encode(self) -> bytes:
        """The bytes of this message, its fields in the order of declaration."""
        parts: list[bytes] = []
        for name, tag, write, default in _table(type(self)).writers:
            value = getattr(self, name)
            if value is None or value == default:
                continue
            if isinstance(value, tuple):
                parts += (tag + write(one) for one in value)
            else:
                parts.append(tag + write(value))
        return b"".join(parts)


class _Table(msgspec.Struct, frozen=True):
    defaults: list[Any]
    required: list[int]
    by_tag: dict[int, tuple[int, Read, bool]]
    writers: list[tuple[str, bytes, Write, Any]]


_MISSING: Any = msgspec.UNSET


def varint(value: int) -> bytes:
    """An integer, 7 bits a byte, the lowest first."""
    if 0 <= value < 128:  # noqa: PLR2004
        return _SMALL[value]
    return _long_varint(value)


@lru_cache(maxsize=256)  # times and sequence ids come several times in a row
def _long_varint(value: int) -> bytes:
    value &= WORD - 1
    out = bytearray()
    while value > 127:  # noqa: PLR2004
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = [bytes([value]) for value in range(128)]


def key(number: int, wire_type: int) -> bytes:
    """What stands before the value of a field."""
    return varint(number << 3 | wire_type)


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A varint at a place, and the place after it.

    Raises:
        WireError: it goes on past `end`, or for more than 10 bytes.
    """
    if at < end and data[at] < 128:  # noqa: PLR2004 - most are that short
        return data[at], at + 1
    value = shift = 0
    for byte in data[at : min(end, at + VARINT_BYTES)]:
        if byte < 128:  # noqa: PLR2004
            value |= byte << shift
            if value >= SIGN:
                value = (value & WORD - 1) - WORD
            return value, at + shift // 7 + 1
        value |= (byte & 127) << shift
        shift += 7
    raise WireError(f"a varint at byte {at} that does not end before byte {end}")


def read_length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Where a value with a length begins and ends.

    Raises:
        WireError: it ends after `end`.
    """
    size, at = read_varint(data, at, end)
    if not 0 <= size <= end - at:
        raise WireError(f"a field of {size} bytes; allowed: 0 to {end - at}")
    return at, at + size


def _read_bool(data: bytes, at: int, end: int) -> tuple[bool, int]:
    value, at = read_varint(data, at, end)
    return value != 0, at


def _read_bytes(data: bytes, at: int, end: int) -> tuple[bytes, int]:
    begin, end = read_length(data, at, end)
    return data[begin:end], end


def _read_str(data: bytes, at: int, end: int) -> tuple[str, int]:
    begin, end = read_length(data, at, end)
    try:
        return data[begin:end].decode(), end
    except UnicodeDecodeError as error:
        raise WireError(f"text at byte {begin} that is not UTF-8") from error


def _write_bytes(value: bytes) -> bytes:
    return varint(len(value)) + value


_SCALARS: dict[type, tuple[int, Read, Write]] = {
    int: (VARINT, read_varint, varint),
    bool: (VARINT, _read_bool, varint),
    bytes: (LENGTH, _read_bytes, _write_bytes),
    str: (LENGTH, _read_str, lambda value: _write_bytes(value.encode())),
}


def _nested(kind: type[Message]) -> tuple[int, Read, Write]:
    def read(data: bytes, at: int, end: int) -> tuple[Message, int]:
        begin, end = read_length(data, at, end)
        return kind.decode(data, begin, end), end

    return LENGTH, read, lambda value: _write_bytes(value.encode())


def _table(kind: type[Message]) -> _Table:
    table = _TABLES.get(kind)
    if table is None:
        table = _TABLES[kind] = _make_table(kind)
    return table


_TABLES: dict[type[Message], _Table] = {}
"""Made when a message is first encoded or decoded."""


def _make_table(kind: type[Message]) -> _Table:
    hints = get_type_hints(kind, include_extras=True)
    table = _Table([], [], {}, [])
    for index, field in enumerate(msgspec.structs.fields(kind)):
        declared, number = get_args(hints[field.name])
        plain = next((a for a in get_args(declared) if a is not NoneType), declared)
        repeated = get_origin(declared) is tuple
        scalar = _SCALARS.get(plain)
        wire_type, read, write = scalar or _nested(plain)
        default = _MISSING if field.default is msgspec.NODEFAULT else field.default
        table.defaults.append(default)
        if default is _MISSING:
            table.required.append(index)
        table.by_tag[number << 3 | wire_type] = index, read, repeated
        table.writers.append((field.name, key(number, wire_type), write, default))
    return table


def _skip(data: bytes, at: int, end: int, tag: int) -> int:
    """Where a field ends that the struct does not have."""
    wire_type = tag & 7
    if wire_type == VARINT:
        return read_varint(data, at, end)[1]
    if wire_type == LENGTH:
        return read_length(data, at, end)[1]
    sizes = {FIXED64: 8, FIXED32: 4}
    if wire_type not in sizes or tag >> 3 == 0 or at + sizes[wire_type] > end:
        raise WireError(f"a field with tag {tag}; allowed: fields above 0 that fit in")
    return at + sizes[wire_type]
