"""How calls look on HTTP/2, beside their messages: time-outs, how they begin and end.

Source: PROTOCOL-HTTP2.md of gRPC.
"""

from __future__ import annotations

import zlib
from enum import IntEnum

from ropeway.gateway.http2 import headers

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
        http_status: HTTP's own.
    """

    def __init__(
        self, status: GrpcStatus, message: str, http_status: int = 200
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.http_status = http_status


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
