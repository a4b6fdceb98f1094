"""Owned tasks: each is known to somebody, and awaited by the time of `close`.

A TaskGroup would cancel every queue's work for one queue's bug; here the bug is
logged, and whoever needs the task (rebalancing) starts it anew.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

_log = logging.getLogger(__name__)
R = TypeVar("R")


class OwnedTasks:
    """The background tasks of one client."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, R], name: str) -> asyncio.Task[R]:
        """Start work in the background; what it raises is logged as our own bug."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("task=%s failed", task.get_name(), exc_info=error)

    async def close(self) -> None:
        """Cancel what runs and wait until it has ended."""
        while self._tasks:
            await cancel(*self._tasks)


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended, whatever they end with."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.gather(*tasks, return_exceptions=True)


async def wait_for(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait for an event at most so long; whether it came."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
