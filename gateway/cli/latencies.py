"""Latencies of a load: a histogram of fixed size, exact to two per cent."""

from __future__ import annotations

import math
from collections import Counter

_GROWTH = 1.02
"""Each bucket is as much wider than the one before."""
_LOG = math.log(_GROWTH)
_LEAST_MS = 0.001


class Latencies:
    """Counts latencies in buckets, in milliseconds."""

    def __init__(self) -> None:
        self.count = 0
        self.least_ms = math.inf
        self.most_ms = 0.0
        self._sum_ms = 0.0
        self._buckets: Counter[int] = Counter()

    def add(self, latency_ms: float) -> None:
        """Count one."""
        self.count += 1
        self._sum_ms += latency_ms
        self.least_ms = min(self.least_ms, latency_ms)
        self.most_ms = max(self.most_ms, latency_ms)
        self._buckets[_bucket(latency_ms)] += 1

    @property
    def mean_ms(self) -> float:
        """The mean; 0 where there is none."""
        return self._sum_ms / self.count if self.count else 0.0

    def percentile_ms(self, share: float) -> float:
        """The latency that a share of them, from 0 to 1, does not exceed."""
        left = math.ceil(share * self.count)
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return min(_LEAST_MS * _GROWTH ** (bucket + 1), self.most_ms)
        return self.most_ms

    def bars(self) -> list[tuple[float, int]]:
        """How many there are up to each power of two, in milliseconds."""
        found: Counter[float] = Counter()
        for bucket, count in self._buckets.items():
            middle = _LEAST_MS * _GROWTH ** (bucket + 0.5)
            found[2.0 ** math.ceil(math.log2(middle))] += count
        return sorted(found.items())


def _bucket(latency_ms: float) -> int:
    return int(math.log(max(latency_ms, _LEAST_MS) / _LEAST_MS) / _LOG)
