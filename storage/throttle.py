"""Holding uploads to so many bytes a second, on average."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Throttle:
    """Whoever takes bytes waits until those taken before are paid for."""

    def __init__(
        self,
        bytes_per_s: int | None,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate = bytes_per_s
        self._clock = clock
        self._sleep = sleep
        self._paid_at = clock()

    async def take(self, size: int) -> None:
        """Return when so many more bytes may go up."""
        if self._rate is None:
            return
        now = self._clock()
        begin = max(self._paid_at, now)
        # Before waiting, so that who comes meanwhile waits behind.
        self._paid_at = begin + size / self._rate
        if begin > now:
            await self._sleep(begin - now)
