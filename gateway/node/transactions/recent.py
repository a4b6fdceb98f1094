"""The newest half messages, in memory: most transactions end within moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropeway.gateway.node.transactions.half_message import Half

_MOST_BYTES = 16 * 1024 * 1024


class Recent:
    """Half messages by their offsets, up to a number of bytes; then the oldest go."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._halves: dict[int, Half] = {}
        self._bytes = 0

    def keep(self, half: Half) -> None:
        """Have it at hand."""
        self._halves[half.offset] = half
        self._bytes += len(half.data)
        while self._bytes > self._most_bytes:
            oldest = self._halves.pop(next(iter(self._halves)))
            self._bytes -= len(oldest.data)

    def take(self, offset: int) -> Half | None:
        """Get it once, if it is still there; who asks is about to end it."""
        half = self._halves.pop(offset, None)
        if half is not None:
            self._bytes -= len(half.data)
        return half
