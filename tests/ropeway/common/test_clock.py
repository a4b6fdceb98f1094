"""The clock tells the time of day, in whole milliseconds."""

from __future__ import annotations

import time

from ropeway.common.clock import now_ms


def test_the_time_is_in_milliseconds_since_1970() -> None:
    before = time.time()
    assert int(before * 1000) <= now_ms() <= time.time() * 1000
