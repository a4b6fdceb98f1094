"""Which of a range of offsets stay: a bit each. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Bits:
    """Numbers from `base` on, each set or not. It grows with what is set."""

    __slots__ = ("_bits", "base")

    def __init__(self, base: int) -> None:
        self.base = base
        self._bits = bytearray()

    def cover(self, end: int) -> bytearray:
        """The bits themselves, a byte for eight numbers, for all before `end`."""
        missing = (end - self.base + 7) // 8 - len(self._bits)
        if missing > 0:
            self._bits += bytes(max(missing, len(self._bits), 64))
        return self._bits

    def set(self, number: int) -> None:
        """Set one."""
        at, bit = divmod(number - self.base, 8)
        self.cover(number + 1)[at] |= 1 << bit

    def __contains__(self, number: int) -> bool:
        at, bit = divmod(number - self.base, 8)
        return at < len(self._bits) and bool(self._bits[at] >> bit & 1)

    def within(self, begin: int, end: int) -> list[int]:
        """Those that are set from `begin` up to before `end`, ascending."""
        found = []
        low, high = (begin - self.base) // 8, (end - self.base + 7) // 8
        for at, value in enumerate(self._bits[low:high], low):
            if value:
                first = self.base + at * 8
                found += [
                    first + bit
                    for bit in range(8)
                    if value >> bit & 1 and begin <= first + bit < end
                ]
        return found

    def windows(self, end: int, size: int) -> Iterator[tuple[int, int]]:
        """Ranges of `size` numbers before `end` in which one is set at least."""
        step = max(size // 8, 1)
        empty = bytes(step)
        for at in range(0, len(self._bits), step):
            piece = self._bits[at : at + step]
            begin = self.base + at * 8
            if begin >= end:
                return
            if piece != empty[: len(piece)]:
                yield begin, min(begin + step * 8, end)
