"""What both sides say of themselves (RFC 9113, 6.5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode
from ropeway.gateway.http2.frames import MAX_FRAME_BYTES, settings_of
from ropeway.gateway.http2.sender import MOST_WINDOW_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.gateway.http2.sender import Sender
    from ropeway.gateway.http2.stream import Stream

PUSH, STREAMS, INITIAL_WINDOW, FRAME, HEADER_LIST = 2, 3, 4, 5, 6
_SETTING_BYTES = 6
_MOST_SETTINGS = 32
"""In one frame, as nghttp2 takes them; there are some eight."""
_MOST_FRAME_BYTES = (1 << 24) - 1
_OUR_FRAME_BYTES = 256 * 1024
"""Longer frames would only let others wait."""


def apply(payload: bytes, sender: Sender, streams: Iterable[Stream]) -> None:
    """Go by what a client has said.

    Args:
        payload: Of its SETTINGS.
        sender: What is sent to it.
        streams: All that have not ended.

    Raises:
        ConnectionFault: A value is none that is allowed.
    """
    if len(payload) % _SETTING_BYTES:
        raise ConnectionFault(
            ErrorCode.FRAME_SIZE_ERROR, f"SETTINGS of {len(payload)} bytes"
        )
    if len(payload) > _MOST_SETTINGS * _SETTING_BYTES:
        raise ConnectionFault(
            ErrorCode.ENHANCE_YOUR_CALM,
            f"{len(payload) // _SETTING_BYTES} settings; allowed: {_MOST_SETTINGS}",
        )
    window = None
    for name, value in settings_of(payload):
        if name == PUSH and value > 1:
            raise _wrong("ENABLE_PUSH", value, "0 and 1")
        if name == INITIAL_WINDOW:
            if value > MOST_WINDOW_BYTES:
                raise _wrong(
                    "INITIAL_WINDOW_SIZE",
                    value,
                    f"up to {MOST_WINDOW_BYTES}",
                    ErrorCode.FLOW_CONTROL_ERROR,
                )
            # The last one counts, so that every stream is looked at once.
            window = value
        elif name == FRAME:
            if not MAX_FRAME_BYTES <= value <= _MOST_FRAME_BYTES:
                raise _wrong(
                    "MAX_FRAME_SIZE", value, f"{MAX_FRAME_BYTES} to {_MOST_FRAME_BYTES}"
                )
            sender.max_frame_bytes = min(value, _OUR_FRAME_BYTES)
    if window is not None:
        sender.set_first_window(window, streams)


def _wrong(
    name: str, value: int, allowed: str, code: ErrorCode = ErrorCode.PROTOCOL_ERROR
) -> ConnectionFault:
    return ConnectionFault(code, f"{name} of {value}; allowed: {allowed}")
