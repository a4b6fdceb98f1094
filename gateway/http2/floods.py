"""Frames that cost a client nothing and us something: so many at a time, no more.

Source: the token bucket of nghttp2 against rapid resets, 1000 and 33 a second.
"""

from __future__ import annotations

import time

from ropeway.gateway.http2.errors import ConnectionFault, ErrorCode

_MOST = 1000
_PER_S = 33.0


class Flood:
    """Counts frames of some kind on one connection.

    Args:
        what: For people.
    """

    __slots__ = ("_began_s", "_left", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._left = _MOST
        self._began_s = time.monotonic()

    def count(self, weight: int = 1) -> None:
        """One more came, which takes as much time as so many.

        Raises:
            ConnectionFault: That is too many.
        """
        self._left -= weight
        if self._left > 0:
            return
        # The clock is asked once in many frames.
        now_s = time.monotonic()
        self._left = min(_MOST, int((now_s - self._began_s) * _PER_S))
        self._began_s = now_s
        if self._left <= 0:
            raise ConnectionFault(
                ErrorCode.ENHANCE_YOUR_CALM,
                f"too many {self._what}; allowed: {_MOST}, and {_PER_S:g} a second",
            )

    def forget(self) -> None:
        """The client has done something useful."""
        self._left = _MOST
