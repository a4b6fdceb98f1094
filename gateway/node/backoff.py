"""Patience: what a node does for as long as it runs goes on, whatever it fails of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ropeway.common.eager import settled
from ropeway.gateway.wire.errors import WireError
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogError, NotReadyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ropeway.common.eager import Eventual
    from ropeway.storage.api import Log

log = structlog.get_logger(__name__)

RETRY_S = 1.0
UNFORESEEN_S = 10.0
"""How long to wait after an error that only a fault of ours explains."""
LONGEST_REST_S = 10.0
"""The longest rest, whatever is due."""
_FORESEEN = LogError, RouteError, WireError


class Rest:
    """Lets a part that takes steps rest while nothing is due.

    Args:
        next_s: In how many seconds a step will have something to do, as of now; 0 or
            less: with the next one. Whatever makes that earlier calls `wake`.
    """

    def __init__(self, next_s: Callable[[], float]) -> None:
        self._next_s = next_s
        self._woken = asyncio.Event()
        self.wake = self._woken.set
        """Have the next step be the usual pause from now, at the latest."""

    async def pause(self, every_s: float) -> None:
        """Wait until a step is due, and at least for the usual pause."""
        self._woken.clear()
        rest_s = min(self._next_s(), LONGEST_REST_S)
        if rest_s > every_s:
            try:
                async with asyncio.timeout(rest_s):
                    await self._woken.wait()
            except TimeoutError:
                return
        await asyncio.sleep(every_s)


async def keep_doing(
    what: str,
    every_s: float,
    step: Callable[[], Eventual[None]],
    pause: Callable[[float], Awaitable[None]] | None = None,
) -> None:
    """Take a step again and again, also when one fails, until cancelled.

    Args:
        what: What it is, for the log.
        every_s: The pause before each step, in seconds.
        step: The step, or what it waits for.
        pause: Waits for so long before a step, or for longer, as `Rest` does.
    """
    while True:
        await (pause or asyncio.sleep)(every_s)
        try:
            await settled(step())
        except Exception:  # nobody would begin it again
            log.exception("a step failed; the next is taken", what=what)
            await asyncio.sleep(UNFORESEEN_S)


class Backoff:
    """Waits as long as it takes, and says so.

    Args:
        warning: What to say then, such as "timers wait".
        message_log: Where topics are opened.
        pause: Waits for so many seconds.
    """

    def __init__(
        self,
        warning: str,
        message_log: Log,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._warning = warning
        self._log = message_log
        self._pause = pause

    async def insist(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something until it succeeds."""
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - nobody would begin it again
                await self.wait(error)
            else:
                return

    async def wait(self, error: Exception, **facts: object) -> None:
        """Return when it is worth another try.

        Args:
            error: Why the last one failed: where a topic was not open, it is now.
            facts: What else to say.
        """
        if isinstance(error, NotReadyError):
            facts["topic"] = error.topic
            try:
                await self._log.ready(error.topic, error.numbers)
            except LogError as refusal:
                error = refusal
            else:
                return
        if isinstance(error, _FORESEEN):
            log.warning(self._warning, reason=str(error), **facts)
            await self._pause(RETRY_S)
        else:
            log.error(self._warning, exc_info=error, **facts)
            await self._pause(UNFORESEEN_S)
