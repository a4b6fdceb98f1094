"""Holding work to so many bytes, or messages, a second, on average."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Throttle:
    """Whoever takes some waits until those taken before are paid for.

    Args:
        per_s: So many a second, of all who share it; None without limit.
        clock: Seconds of a clock that only goes on.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        per_s: float | None,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._per_s = per_s
        self._clock = clock
        self._sleep = sleep
        self._paid_at = clock()

    async def take(self, count: int) -> None:
        """Return when so many more may go on."""
        if self._per_s is None:
            return
        now = self._clock()
        begin = max(self._paid_at, now)
        # Before waiting, so that who comes meanwhile waits behind.
        self._paid_at = begin + count / self._per_s
        if begin > now:
            await self._sleep(begin - now)
