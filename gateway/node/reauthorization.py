"""Requests that wait or go on, and are judged again when the rules have changed.

Each is kept weakly: what has been answered, or whose client has gone, is forgotten by
whoever waits with it, and so it is forgotten here.

Laws:

* What is refused is answered so, and nothing more is delivered to it, within a second
  of the change (as the guard learns of it).
* What was let in before a change and begins to wait after it is judged as well: each
  request notes how many changes there had been when it was let in.
* Changes that come fast are judged together, `PAUSE_S` apart; and after `AT_A_TIME`
  requests others have their turn, so that no change stops the loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

import structlog

if TYPE_CHECKING:
    from ropeway.common.eager import Eventual

log = structlog.get_logger(__name__)

PAUSE_S = 0.25
AT_A_TIME = 100


class Judged(Protocol):
    """What goes on, and may have to end."""

    def judge(self) -> Eventual[None]:
        """End it, unless its sender may still have it; it must not raise."""


class Reauthorization:
    """All requests of a node that wait or go on, where access is controlled."""

    def __init__(self) -> None:
        self._all: WeakSet[Judged] = WeakSet()
        self._are_new = False
        self._task: asyncio.Task[None] | None = None
        self.changes = 0
        """How often rules have changed."""

    def __len__(self) -> int:
        return len(self._all)

    def add(self, one: Judged, changes: int) -> None:
        """Judge something again at each change, for as long as anybody else has it.

        Args:
            one: What goes on.
            changes: How many there had been when it was let in.
        """
        self._all.add(one)
        if changes != self.changes:
            self._judge_soon()

    def rules_changed(self) -> None:
        """Judge all, soon."""
        self.changes += 1
        self._judge_soon()

    def _judge_soon(self) -> None:
        self._are_new = True
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Judge nothing more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._are_new:
                self._are_new = False
                await self._judge_all()
                await asyncio.sleep(PAUSE_S)
        finally:
            self._task = None

    async def _judge_all(self) -> None:
        all_now = list(self._all)
        for at in range(0, len(all_now), AT_A_TIME):
            await _judge(all_now[at : at + AT_A_TIME])
            await asyncio.sleep(0)


async def _judge(some: list[Judged]) -> None:
    waited = [found for one in some if (found := one.judge()) is not None]
    outcomes = await asyncio.gather(*waited, return_exceptions=True)
    failed = [one for one in outcomes if isinstance(one, Exception)]
    if failed:
        log.error("requests not judged again", count=len(failed), exc_info=failed[0])
