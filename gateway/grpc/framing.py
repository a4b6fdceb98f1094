"""How calls look on HTTP/2: messages with their lengths, time-outs, and how they end.

    +------------+-----------+---------+
    | compressed | length  4 | message |  one after the other, cut by DATA anywhere
    +------------+-----------+---------+

Source: PROTOCOL-HTTP2.md of gRPC.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from typing import NamedTuple

from ropeway.gateway.http2 import headers

_PREFIX = struct.Struct(">BI")
PREFIX_BYTES = _PREFIX.size
_TIMEOUT_DIGITS = 8
_UNITS_S = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
ENCODINGS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""How requests may be compressed, and zlib's number for each."""
IDENTITY = "identity"
_PLAIN = range(0x20, 0x7F)
_PERCENT = ord("%")


class GrpcStatus(IntEnum):
    """How a call ended, as gRPC sees it."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class CallError(Exception):
    """A call cannot be worked on.

    Args:
        status: What the client is told.
        message: What came, and what is allowed.
    """

    def __init__(self, status: GrpcStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Compressed(NamedTuple):
    """A message that is not inflated yet."""

    data: bytes
    window_bits: int
    """As zlib wants them."""
    limit_bytes: int
    """Of the message."""

    def __len__(self) -> int:
        return len(self.data)


class MessageReader:
    """Puts the messages of one stream together.

    Args:
        limit_bytes: Of one message, compressed or not.
        encoding: How it is compressed where it says it is.
    """

    __slots__ = ("_came", "_encoding", "_limit_bytes", "_need")

    def __init__(self, limit_bytes: int, encoding: str = IDENTITY) -> None:
        self._limit_bytes = limit_bytes
        self._encoding = encoding
        self._came = bytearray()
        self._need = PREFIX_BYTES

    @property
    def unfinished(self) -> int:
        """Bytes that came of a message that is not whole."""
        return len(self._came)

    def feed(self, data: bytes) -> list[bytes | Compressed]:
        """Every message that is whole with these bytes, as it came.

        Raises:
            CallError: One is too long, or cannot be read.
        """
        if not self._came and len(data) >= PREFIX_BYTES:
            compressed, size = _PREFIX.unpack_from(data)
            if not compressed and len(data) == PREFIX_BYTES + size:
                # As most are: one message, whole, in one frame.
                return [data[PREFIX_BYTES:]]
        self._came += data
        found: list[bytes | Compressed] = []
        while len(self._came) >= self._need:
            compressed, size = _PREFIX.unpack_from(self._came)
            if size > self._limit_bytes:
                raise too_long(size, self._limit_bytes)
            self._need = PREFIX_BYTES + size
            if len(self._came) < self._need:
                break
            message = bytes(self._came[PREFIX_BYTES : self._need])
            del self._came[: self._need]
            self._need = PREFIX_BYTES
            found.append(self._compressed(message) if compressed else message)
        return found

    def _compressed(self, data: bytes) -> Compressed:
        bits = ENCODINGS.get(self._encoding)
        if bits is None:
            raise CallError(
                GrpcStatus.INTERNAL, "a compressed message without grpc-encoding"
            )
        return Compressed(data, bits, self._limit_bytes)


def too_long(size: int, limit: int) -> CallError:
    """What a client is told whose message is too long."""
    return CallError(
        GrpcStatus.RESOURCE_EXHAUSTED,
        f"message of {size} bytes or more; allowed: {limit}",
    )


def prefixed(message: bytes) -> bytes:
    """A message as it is sent, not compressed."""
    return _PREFIX.pack(0, len(message)) + message


def timeout_s(text: str) -> float:
    """How long a client waits, by its grpc-timeout.

    Raises:
        CallError: It is none.
    """
    digits, unit = text[:-1], _UNITS_S.get(text[-1:])
    if (
        unit is None
        or not digits.isascii()
        or not digits.isdecimal()
        or len(digits) > _TIMEOUT_DIGITS
    ):
        raise CallError(
            GrpcStatus.INTERNAL,
            "grpc-timeout is none; allowed: up to 8 digits, and one of H M S m u n",
        )
    return int(digits) * unit


def begins(http_status: int = 200) -> bytes:
    """The block that an answer begins with."""
    return headers.encode(_beginning(http_status))


def _beginning(http_status: int) -> list[tuple[str, str]]:
    return [
        (":status", str(http_status)),
        ("content-type", "application/grpc"),
        ("grpc-accept-encoding", ",".join((IDENTITY, *ENCODINGS))),
    ]


def ends(status: GrpcStatus, message: str = "") -> bytes:
    """The block that an answer ends with."""
    return headers.encode(_ending(status, message))


def ends_at_once(status: GrpcStatus, message: str, http_status: int = 200) -> bytes:
    """The block that is all of an answer."""
    return headers.encode([*_beginning(http_status), *_ending(status, message)])


def _ending(status: GrpcStatus, message: str) -> list[tuple[str, str]]:
    fields = [("grpc-status", str(int(status)))]
    if message:
        fields.append(("grpc-message", percent_encoded(message)))
    return fields


def percent_encoded(text: str) -> str:
    """A text as grpc-message has it."""
    return "".join(
        chr(byte) if byte in _PLAIN and byte != _PERCENT else f"%{byte:02X}"
        for byte in text.encode("utf-8", "replace")
    )
