"""Tasks that nobody awaits where they are started, kept until they have ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class Tasks(set[asyncio.Task[Any]]):
    """The tasks that run.

    The event loop itself keeps none, so that one of which nobody else knows may be
    collected half-way.
    """

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Have work done, and forget it when it is; what it raises is for who looks."""
        task = asyncio.get_running_loop().create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task
