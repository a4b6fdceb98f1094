"""The time of day, as messages carry it."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Tell this machine's time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
