"""Holding work to so many messages a second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class RateLimit:
    """Has whoever shares it wait, so that all together are no faster.

    What was not used while nothing was to be done is not made up for.

    Args:
        per_s: Messages a second; None: as many as can be.
        clock: Seconds of a monotonic clock.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        per_s: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._per_s = per_s
        self._clock = clock
        self._sleep = sleep
        self._free_s = clock()
        """When the messages so far have had their time."""

    async def spend(self, messages: int) -> None:
        """Wait as long as so many messages, and those before them, have to take."""
        if self._per_s is None or not messages:
            return
        now_s = self._clock()
        self._free_s = max(self._free_s, now_s) + messages / self._per_s
        await self._sleep(self._free_s - now_s)
