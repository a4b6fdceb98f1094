"""Requests that wait are judged again where access rules change meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ropeway.common.eager import eager
from ropeway.gateway.processors.admission import admit
from ropeway.gateway.processors.needs import NEEDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.common.eager import Eventual
    from ropeway.gateway.processors.context import Context


@eager
async def judge_again(context: Context, leave: Callable[[], bool]) -> None:
    """Refuse a request that waits, unless its sender may still have it done.

    Args:
        context: The request.
        leave: Have it wait no more; False where it does not.
    """
    guard = context.node.guard
    if guard is None:
        return
    try:
        await admit(context, guard, NEEDS[context.code])
    except Exception as error:  # noqa: BLE001 - turned into an answer
        if leave():
            context.fail(error)


class Interruptible:
    """A request whose task waits, and is judged again meanwhile; a context manager."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._task: asyncio.Task[Any] | None = None

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        context = self._context
        if context.node.guard is not None:
            context.node.reauthorization.add(self, context.rule_changes)

    def __exit__(self, *_: object) -> None:
        self._task = None

    def judge(self) -> Eventual[None]:
        """See whether the request may still be done."""
        return judge_again(self._context, self._leave)

    def _leave(self) -> bool:
        return self._task is not None and self._task.cancel()


class Refusable:
    """A request that waits without a task, and is judged again meanwhile."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waits = True
        if context.node.guard is not None:
            context.node.reauthorization.add(self, context.rule_changes)

    def judge(self) -> Eventual[None]:
        """See whether the request may still be done."""
        return judge_again(self._context, self.leave)

    def leave(self) -> bool:
        """Have the request wait no more; False where it was refused."""
        waited, self._waits = self._waits, False
        return waited
