"""How long requests take from their arrival to their answer: a sample, by request code.

Not every request is timed, only the first that comes once `SAMPLE_EVERY_S` is over: a
busy node spends a thousandth of its time on it, and a quiet one times nearly all. Those
that wait for messages are left out from when they begin to wait.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import NamedTuple

SAMPLE_EVERY_S = 0.01

BOUNDS_S = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Upper bounds of the buckets; the last bucket has none."""


class Histogram(NamedTuple):
    """The sample of one request code."""

    counts: list[int]
    """Requests in each bucket of `BOUNDS_S`, and in the one above them."""
    sum_s: float


class Latencies:
    """The samples of all request codes that came."""

    def __init__(self) -> None:
        self._counts: dict[int, list[int]] = {}
        self._sums_s: dict[int, float] = {}

    def observe(self, code: int, began_s: float) -> None:
        """A request is answered now that came at `began_s` of `time.monotonic`."""
        took_s = time.monotonic() - began_s
        counts = self._counts.get(code)
        if counts is None:
            counts = self._counts[code] = [0] * (len(BOUNDS_S) + 1)
            self._sums_s[code] = 0.0
        counts[bisect_left(BOUNDS_S, took_s)] += 1
        self._sums_s[code] += took_s

    def by_code(self) -> dict[int, Histogram]:
        """What was observed so far."""
        return {
            code: Histogram(list(counts), self._sums_s[code])
            for code, counts in self._counts.items()
        }
