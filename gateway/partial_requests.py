"""How much has come of gRPC requests that are not whole yet, told by their frames.

The gRPC server keeps a request until all of it is there, and says nothing of it. But
its bytes pass through here: HTTP/2 frames (RFC 9113, 4.1), in whose DATA each request
begins with its length.

    0        3      4       5           9
    +--------+------+-------+-----------+---------+      DATA of a stream, together:
    | length | kind | flags | stream id | payload |  ->  | 0 or 1 | length 4 | request |
    +--------+------+-------+-----------+---------+
"""

from __future__ import annotations

import struct

_PREFACE_BYTES = 24
_HEAD = struct.Struct(">BHBBI")
_PREFIX_BYTES = 5
_DATA, _RESET = 0, 3
_END_STREAM = 1
_STREAM = (1 << 31) - 1
_SMALL_BYTES = 16 * 1024
"""Frames of that size every receiver takes; larger ones are the server's choice."""


class _Request:
    """The request of one stream that is coming."""

    __slots__ = ("came", "counts", "left", "prefix")

    def __init__(self) -> None:
        self.prefix = b""
        self.left = 0
        """What is still to come."""
        self.came = 0
        self.counts = False


class PartialRequests:
    """Follows the bytes of one connection.

    Args:
        limit_bytes: The server refuses longer requests, and keeps nothing of them.
    """

    __slots__ = ("_ends", "_head", "_limit_bytes", "_requests", "_skip", "_stream")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._skip = _PREFACE_BYTES
        self._head = b""
        self._stream: int | None = None
        """Whose DATA is being read."""
        self._ends = False
        self._requests: dict[int, _Request] = {}

    def feed(self, data: bytes) -> int:
        """Follow more bytes; by how much those of unfinished requests have grown."""
        at, end, grown = 0, len(data), 0
        while at < end:
            if self._skip:
                until = min(at + self._skip, end)
                if self._stream is not None:
                    grown += self._came(self._stream, data, at, until)
                self._skip -= until - at
                at = until
                if not self._skip:
                    grown -= self._frame_ended()
                continue
            if not self._head and end - at >= _HEAD.size:
                grown -= self._frame_begins(*_HEAD.unpack_from(data, at))
                at += _HEAD.size
                continue
            part = data[at : at + _HEAD.size - len(self._head)]
            at += len(part)
            self._head += part
            if len(self._head) == _HEAD.size:
                grown -= self._frame_begins(*_HEAD.unpack(self._head))
                self._head = b""
        return grown

    def _frame_begins(
        self, high: int, low: int, kind: int, flags: int, stream: int
    ) -> int:
        """A frame comes; how much is not counted any more."""
        self._skip = size = high << 16 | low
        stream &= _STREAM
        if kind == _RESET:
            return self._forget(stream)
        if kind == _DATA:
            ends = bool(flags & _END_STREAM)
            # Most requests are whole in one frame, of which a connection has but one.
            if not ends or size > _SMALL_BYTES or stream in self._requests:
                self._stream, self._ends = stream, ends
        return 0 if size else self._frame_ended()

    def _frame_ended(self) -> int:
        stream, self._stream = self._stream, None
        return self._forget(stream) if stream is not None and self._ends else 0

    def _forget(self, stream: int) -> int:
        request = self._requests.pop(stream, None)
        return request.came if request is not None else 0

    def _came(self, stream: int, data: bytes, at: int, end: int) -> int:
        """Bytes of a stream came; how much more there is of its unfinished request."""
        request = self._requests.get(stream)
        if request is None:
            request = self._requests[stream] = _Request()
        before = request.came
        while at < end:
            if request.left:
                taken = min(request.left, end - at)
                request.left -= taken
                if request.counts:
                    request.came = request.came + taken if request.left else 0
            else:
                taken = min(_PREFIX_BYTES - len(request.prefix), end - at)
                request.prefix += data[at : at + taken]
                if len(request.prefix) == _PREFIX_BYTES:
                    request.left = int.from_bytes(request.prefix[1:], "big")
                    request.counts = request.left <= self._limit_bytes
                    request.prefix = b""
            at += taken
        return request.came - before
