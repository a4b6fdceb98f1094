"""Work that is done at once as a rule, and waits now and then; written once.

asyncio's eager tasks (Python 3.12) take the first steps of a coroutine at once. `begin`
does so here, and there is no task at all where none is needed.

Laws:

* Such work is one coroutine function. Nobody writes a second form for the case in which
  nothing has to be waited for.
* Where nothing has to be, there is neither a task nor an awaitable: the result is
  returned, or the error raised, by `begin`.
* Until it waits, the work is in no task of its own. What needs one (`asyncio.timeout`,
  `asyncio.current_task`, anything that others wrote) comes behind `own_task`.
* `Waiting` is awaited once.

It costs a quarter of a microsecond more than a function that returns the same. Where
that is too much, a function returns an `Eventual`: its result, or a coroutine that does
the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

T = TypeVar("T")
P = ParamSpec("P")

Eventual: TypeAlias = T | Awaitable[T]
"""A result; or, where it takes time, what to await for it."""


class Waiting(Generic[T]):
    """Work that has begun and waits; awaiting it goes on from there.

    Args:
        work: A coroutine that has taken steps.
        waits_for: What it has yielded.
    """

    __slots__ = ("_waits_for", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], waits_for: object) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        work, waits_for = self._work, self._waits_for
        try:
            while True:
                try:
                    sent = yield waits_for
                except GeneratorExit:
                    work.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the work's
                    waits_for = work.throw(error)
                else:
                    waits_for = work.send(sent)
        except StopIteration as end:
            result: T = end.value
            return result


def begin(work: Coroutine[Any, Any, T]) -> T | Waiting[T]:
    """Do work until it has to wait.

    Returns:
        Its result; or what is to be awaited for it.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    return Waiting(work, waits_for)


def eager(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Eventual[T]]:
    """Have a coroutine function begin when it is called: see `begin`."""

    @wraps(function)
    def begun(*args: P.args, **kwargs: P.kwargs) -> Eventual[T]:
        return begin(function(*args, **kwargs))

    return begun


async def settled(answer: Eventual[T]) -> T:
    """Await an answer, if it takes time."""
    if isinstance(answer, Awaitable):
        return await answer
    return answer


async def own_task(work: Awaitable[T]) -> T:
    """Await what may need a task of its own, such as what others wrote."""
    await asyncio.sleep(0)
    return await work
