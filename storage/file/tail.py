"""The newest blocks, kept in memory as they were written, for those who keep up."""

from __future__ import annotations

from bisect import bisect_right

OVERHEAD_BYTES = 150
"""What a block costs beside its bytes: two list slots, two objects' headers."""


class Tail:
    """Bodies of recent blocks by their position in the log, limited in bytes."""

    __slots__ = ("_bodies", "_limit", "_size", "_starts")

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._size = 0
        self._starts: list[int] = []
        self._bodies: list[bytes] = []
        # Not views, of which each full garbage collection would look at every one.

    def add(self, position: int, body: bytes) -> None:
        """Keep a body that begins at a position after all earlier ones."""
        self._starts.append(position)
        self._bodies.append(body)
        self._size += len(body) + OVERHEAD_BYTES
        if self._size > self._limit:
            self._shrink()

    def get(self, position: int, size: int) -> memoryview | None:
        """The bytes at a position, without a copy; None where they are not kept."""
        at = bisect_right(self._starts, position) - 1
        if at < 0:
            return None
        begin = position - self._starts[at]
        body = self._bodies[at]
        if begin + size > len(body):
            return None
        return memoryview(body)[begin : begin + size]

    def _shrink(self) -> None:
        """Drop the oldest eighth at once, for dropping moves all that stay."""
        keep = self._limit - self._limit // 8
        count = 0
        while self._size > keep:
            self._size -= len(self._bodies[count]) + OVERHEAD_BYTES
            count += 1
        del self._starts[:count]
        del self._bodies[:count]
