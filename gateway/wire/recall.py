"""Recall handles: how producers name a message that waits, to take it back.

    base64url("v1 topic broker delivery-time unique-key")

The delivery time is in milliseconds since 1970, as decimal text.

Source: RecallMessageHandle.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from ropeway.common.versions import newer
from ropeway.gateway.wire.errors import MessageError

_VERSION = "v1"
_PARTS = 5
_MAX_DIGITS = 18


class RecallHandle(msgspec.Struct, frozen=True, gc=False):
    """The parts of a handle."""

    topic: str
    broker: str
    deliver_ms: int
    unique_key: str


def dump(handle: RecallHandle) -> bytes:
    """Write a handle, as the answer to a send has it."""
    text = (
        f"{_VERSION} {handle.topic} {handle.broker} {handle.deliver_ms} "
        f"{handle.unique_key}"
    )
    return base64.urlsafe_b64encode(text.encode())


def parse(text: str) -> RecallHandle:
    """Take a handle apart.

    Raises:
        MessageError: It is none.
    """
    try:
        parts = base64.b64decode(text, b"-_", validate=True).decode().split(" ")
    except (binascii.Error, ValueError) as error:
        raise _bad(text) from error
    if len(parts) < _PARTS or not _is_version(parts[0]):
        raise _bad(text)
    if parts[0] != _VERSION:
        raise MessageError(newer("the recall handle", parts[0], _VERSION))
    topic, broker, deliver, unique_key = parts[1:_PARTS]
    if not (deliver.isascii() and deliver.isdecimal() and len(deliver) <= _MAX_DIGITS):
        raise _bad(text)
    return RecallHandle(topic, broker, int(deliver), unique_key)


def _is_version(part: str) -> bool:
    return part[:1] == "v" and part[1:].isascii() and part[1:].isdecimal()


def _bad(text: str) -> MessageError:
    return MessageError(
        f"recall handle is invalid: {text!r:.120}; allowed: what a send has answered"
    )
