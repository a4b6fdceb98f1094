"""The newest packs, kept in memory as they were sent, for consumers that keep up."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque

OVERHEAD_BYTES = 200
"""What a pack costs beside its bytes: list slots, objects' headers, its offset."""


class Cached:
    """The newest packs of one partition, without a gap, up to its end."""

    __slots__ = ("_bases", "_packs")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._packs: list[bytes] = []

    def find(self, offset: int) -> int | None:
        """Which pack an offset below the partition's end is in."""
        at = bisect_right(self._bases, offset)
        return at - 1 if at else None

    def get(self, at: int) -> bytes | None:
        """A pack as `find` counts them; None past the newest."""
        return self._packs[at] if at < len(self._packs) else None

    def add(self, base_offset: int, pack: bytes) -> None:
        """Keep one behind all others."""
        self._bases.append(base_offset)
        self._packs.append(pack)

    def drop(self, count: int) -> int:
        """Forget the oldest; returns their bytes."""
        freed = sum(map(len, self._packs[:count])) + count * OVERHEAD_BYTES
        del self._bases[:count]
        del self._packs[:count]
        return freed


class Tail:
    """What is cached of all partitions, limited in bytes.

    Args:
        limit_bytes: When there is more, the oldest packs of all are forgotten.
    """

    __slots__ = ("_limit", "_order", "_size")

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._size = 0
        self._order: deque[Cached] = deque()
        """Whose pack is the next oldest."""

    def add(self, cached: Cached, base_offset: int, pack: bytes) -> None:
        """Keep a partition's newest pack."""
        cached.add(base_offset, pack)
        self._order.append(cached)
        self._size += len(pack) + OVERHEAD_BYTES
        if self._size > self._limit:
            self._shrink()

    def _shrink(self) -> None:
        """Forget the oldest eighth at once, for dropping moves all that stay."""
        keep = self._limit - self._limit // 8
        while self._size > keep:
            batch = max(len(self._order) // 8, 1)
            oldest = Counter(self._order.popleft() for _ in range(batch))
            self._size -= sum(cached.drop(n) for cached, n in oldest.items())
