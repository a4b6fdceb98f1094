"""What is told of a fault: to a connection or to one stream (RFC 9113, 5.4 and 7)."""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """Why a connection or a stream ends."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


class ConnectionFault(Exception):  # noqa: N818 - the RFC's errors are codes
    """The client broke a rule so that the connection cannot go on.

    Args:
        code: What it is told.
        reason: What came, and what is allowed; goes to our log and to the client.
    """

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class StreamFault(Exception):  # noqa: N818 - likewise
    """The client broke a rule of one stream, which alone ends.

    Args:
        stream_id: Whose.
        code: What it is told.
    """

    def __init__(self, stream_id: int, code: ErrorCode) -> None:
        super().__init__(f"stream {stream_id}: {code.name}")
        self.stream_id = stream_id
        self.code = code
