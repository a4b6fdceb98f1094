"""The ROCKETMQ header: what Java writes where it was told not to write JSON.

     0      2          3         5        9      13
     +------+----------+---------+--------+------+-------------------+--------+
     | code | language | version | opaque | flag | remark i32 + bytes | fields |
     +------+----------+---------+--------+------+-------------------+--------+

fields: i32 length, then entries of i16 + key and i32 + value; all big endian.

Source: RocketMQSerializable.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.unreadable import UNREADABLE, reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIXED = struct.Struct(">HBHii")
_I32 = struct.Struct(">i")
_U16 = struct.Struct(">H")
_CODE_MASK = 0xFFFF

# The header has 16 bits for the code, so a 5.x client's pop requests (200050 and on)
# arrive as the low 16 bits of theirs. No other command has those.
_CODES_BEYOND_16_BITS = {
    code & _CODE_MASK: int(code) for code in RequestCode if code > _CODE_MASK
}


class Fixed(NamedTuple):
    """The numbers in front, as the bytes have them."""

    code: int
    language: int
    version: int
    opaque: int
    flag: int


def decode(header: bytes) -> tuple[Fixed, str, dict[str, str]]:
    """Read the numbers, the remark and the fields.

    Raises:
        FrameError: It is none; the text says why.
    """
    try:
        return _decode(header)
    except UNREADABLE as error:
        raise _refusal(reason_of(error)) from error


def _decode(header: bytes) -> tuple[Fixed, str, dict[str, str]]:
    fixed = Fixed(*_FIXED.unpack_from(header))
    remark, at = _take(header, _FIXED.size)
    fields, _ = _take(header, at)
    code = _CODES_BEYOND_16_BITS.get(fixed.code)
    if code is not None:
        fixed = fixed._replace(code=code)
    return fixed, remark.decode(), _decode_fields(fields)


def _take(data: bytes, at: int) -> tuple[bytes, int]:
    """Read a length and that many bytes; give the bytes and the place behind them."""
    (length,) = _I32.unpack_from(data, at)
    start = at + _I32.size
    end = start + length
    if length < 0 or end > len(data):
        raise _refusal(f"{length} bytes at {start} of {len(data)}")
    return data[start:end], end


def _refusal(reason: str) -> FrameError:
    return FrameError(f"ROCKETMQ header is not a command: {reason}")


def _decode_fields(data: bytes) -> dict[str, str]:
    fields = {}
    at = 0
    end = len(data)
    while at < end:
        (length,) = _U16.unpack_from(data, at)
        at += 2 + length
        (value_bytes,) = _I32.unpack_from(data, at)
        value = at + 4
        if not 0 <= value_bytes <= end - value:
            raise _refusal(f"{value_bytes} bytes at {value} of {end}")
        key = data[at - length : at]
        at = value + value_bytes
        fields[key.decode()] = data[value:at].decode()
    return fields


def encode(fixed: Fixed, remark: str, fields: Mapping[str, str]) -> bytes:
    """Write a header; a code beyond 16 bits loses its upper ones, as Java's does."""
    entries = bytearray()
    for key, value in fields.items():
        name, text = key.encode(), value.encode()
        entries += _U16.pack(len(name)) + name + _I32.pack(len(text)) + text
    note = remark.encode()
    return b"".join(
        (
            _FIXED.pack(fixed.code & _CODE_MASK, *fixed[1:]),
            _I32.pack(len(note)),
            note,
            _I32.pack(len(entries)),
            entries,
        )
    )
