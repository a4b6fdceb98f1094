"""Bytes that cannot be read: what decoders raise, and what who sent them is told."""

from __future__ import annotations

import struct

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, struct.error)
"""All that decoders of JSON, of text and of fixed fields raise of bytes."""


def reason_of(error: Exception) -> str:
    """Say what is wrong with bytes that were not read, in no words of Python's.

    Args:
        error: One of `UNREADABLE`.
    """
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return f"byte {error.start} of a text is 0x{byte:02x}; allowed: UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, struct.error):
        return "it ends before all that it says it holds"
    return str(error)
