"""Frames that cost a client nothing and us something: so many at a time, no more.

Source: the token bucket of nghttp2 against rapid resets, 1000 and 33 a second.
"""

from __future__ import annotations

import time

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode

MOST = 1000
_PER_S = 33.0


class Flood:
    """Counts frames of some kind on one connection.

    Args:
        what: For people.
    """

    __slots__ = ("_began_s", "_what", "left")

    def __init__(self, what: str) -> None:
        self._what = what
        self.left = MOST
        """How many may come yet; who has done something useful has all again."""
        self._began_s = time.monotonic()

    def count(self, weight: int = 1) -> None:
        """One more came, which takes as much time as so many.

        Raises:
            ConnectionFault: That is too many.
        """
        self.left -= weight
        if self.left > 0:
            return
        # The clock is asked once in many frames.
        now_s = time.monotonic()
        self.left = min(MOST, int((now_s - self._began_s) * _PER_S))
        self._began_s = now_s
        if self.left <= 0:
            raise ConnectionFault(
                ErrorCode.ENHANCE_YOUR_CALM,
                f"too many {self._what}; allowed: {MOST}, and {_PER_S:g} a second",
            )
