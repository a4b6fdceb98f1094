"""The time that retention goes by: this machine's, but for leaps of its clock.

A clock that is set wrong by years for a minute must not cost what was to be kept for
years. So a leap forward is believed once it has held for a day; until then time goes on
from where it was. A leap back makes nothing older, and is believed at once. While no
node runs, time leaps, too: after a stop of some hours segments go a day later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LEAP_MS = 3_600_000
"""What a clock may be ahead by: more than any that is kept right, and no retention."""
BELIEVED_AFTER_S = 86_400.0


class RetentionClock:
    """Says what time it is.

    Args:
        wall_ms: This machine's clock, in milliseconds since 1970.
        running_s: Seconds that only grow, at an even pace.
        last_ms: What `now_ms` said last before this process began; None where that is
            not known.
    """

    def __init__(
        self,
        wall_ms: Callable[[], int],
        running_s: Callable[[], float],
        last_ms: int | None,
    ) -> None:
        self._wall_ms = wall_ms
        self._running_s = running_s
        self._at_ms = wall_ms() if last_ms is None else last_ms
        self._at_s = running_s()
        self._ahead_since_s: float | None = None

    def now_ms(self) -> int:
        """The time, in milliseconds since 1970."""
        wall_ms, running_s = self._wall_ms(), self._running_s()
        steady_ms = self._at_ms + int((running_s - self._at_s) * 1000)
        if wall_ms > steady_ms + LEAP_MS:
            if self._ahead_since_s is None:
                self._ahead_since_s = running_s
            if running_s - self._ahead_since_s < BELIEVED_AFTER_S:
                return steady_ms
        self._ahead_since_s = None
        self._at_ms, self._at_s = wall_ms, running_s
        return wall_ms
