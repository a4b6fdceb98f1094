"""Calls with a stream of answers end where their callers are no longer who they were.

What such a call asks of processors is judged there; this is about who calls.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, TypeVar

from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable

    from ropeway.gateway.grpc.calls import Call

T = TypeVar("T")

_END = object()


async def while_known(
    call: Call, answers: AsyncGenerator[T, None]
) -> AsyncGenerator[T, None]:
    """Pass answers on for as long as the caller is who it was.

    Args:
        call: Identified already.
        answers: Closed at the end.

    Raises:
        RefusedError: It no longer is.
    """
    async with contextlib.aclosing(answers):
        if call.node.guard is None:
            async for answer in answers:
                yield answer
            return
        identity = _Identity(call)
        call.node.reauthorization.add(identity, call.rule_changes)
        while True:
            found = await identity.wait(anext(answers, _END))
            if found is _END:
                return
            yield found  # type: ignore[misc]


class _Identity:
    """Who calls, looked at again when rules change."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._principal = call.principal
        self._refused: tuple[Code, str] | None = None
        """Why it is none any more; an error that is kept would keep its frames."""
        self._task: asyncio.Task[object] | None = None
        """Waits for an answer; None while one is on its way."""

    async def wait(self, answer: Awaitable[object]) -> object:
        """The next answer.

        Raises:
            RefusedError: The caller is no longer known.
        """
        task = asyncio.current_task()
        self._task = task
        try:
            if self._refused is not None:
                raise RefusedError(*self._refused)
            return await answer
        except asyncio.CancelledError:
            # Its client may have given up at the same time.
            if self._refused is None or task is None or task.uncancel():
                raise
            raise RefusedError(*self._refused) from None
        finally:
            # Its error has this frame, and so would have itself: a cycle.
            self._task = task = None

    async def judge(self) -> None:
        """See who calls."""
        try:
            await self._call.authenticate()
        except RefusedError as error:
            self._refuse(error.code, error.message)
            return
        if self._call.principal != self._principal:
            self._refuse(Code.UNAUTHORIZED, "rules of access have changed; call again")

    def _refuse(self, code: Code, why: str) -> None:
        if self._refused is None:
            self._refused = code, why
            if self._task is not None:
                self._task.cancel()
