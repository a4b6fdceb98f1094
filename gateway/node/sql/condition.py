"""A whole expression, compiled: made once, asked for each message."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from gateway.node.sql.nodes import SqlError
from gateway.wire import message

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.node.sql.nodes import Evaluate, Node

MAX_CHARACTERS = 16_384
"""Of an expression: so many take a tenth of a second to compile."""

QUICK_CHARACTERS = 128
"""So many take a millisecond to compile, which may be done on the loop once the grammar
is there."""

_KEPT_CHARACTERS = 256 * 1024
"""Expressions that are kept compiled have no more, all together. A pull may bring its
own, and each character takes some 50 bytes."""
_MOST_WAITING = 256
"""Expressions that wait for the thread."""


class NotCompiledError(Exception):
    """An expression cannot be compiled at once; `compile_later` does it.

    Args:
        text: The expression.
    """

    def __init__(self, text: str) -> None:
        super().__init__("an expression has to be compiled first")
        self.text = text


class CompilerBusyError(Exception):
    """Too many expressions wait to be compiled."""


class Condition:
    """What a message has to have.

    Args:
        evaluate: Whether properties have it: True, False, or None for unknown.
        terms: How many properties that looks up at most.
    """

    __slots__ = ("evaluate", "terms")

    def __init__(self, evaluate: Evaluate, terms: int) -> None:
        self.evaluate = evaluate
        self.terms = terms

    def accepts(self, record: bytes | memoryview) -> bool:
        """Whether a stored message has it; unknown, or incomparable, is no."""
        try:
            return self.evaluate(message.view_pairs(record)) is True
        except ValueError:
            return False


def compile_condition(text: str) -> Condition:
    """Read an expression and make it ready.

    Raises:
        SqlError: It cannot be used; the text says where and why.
    """
    if len(text) > MAX_CHARACTERS:
        raise SqlError(f"{len(text)} characters; allowed: {MAX_CHARACTERS}")
    known = _KNOWN.get(text)
    if known is None:
        known = _compile(text)
        _KNOWN.put(text, known)
    if isinstance(known, SqlError):
        raise known.with_traceback(None)
    return known


def compile_quickly(text: str) -> Condition:
    """The same, for the loop: only what takes no time, or was compiled before.

    Raises:
        SqlError: It cannot be used.
        NotCompiledError: It would take time.
    """
    if len(text) <= MAX_CHARACTERS and text not in _KNOWN:
        is_loaded = _parser.cache_info().currsize
        if not is_loaded or len(text) > QUICK_CHARACTERS:
            raise NotCompiledError(text)
    return compile_condition(text)


async def compile_later(text: str) -> None:
    """Compile an expression on a thread, so that `compile_quickly` has it then.

    Raises:
        CompilerBusyError: Too many wait for that.
    """
    waiting = _WAITING.get(text)
    if waiting is None:
        if len(_WAITING) >= _MOST_WAITING:
            raise CompilerBusyError(
                f"{len(_WAITING)} expressions wait to be compiled; try again"
            )
        waiting = _WAITING[text] = _THREAD.submit(_compile, text)
        # On the thread: whoever waits may be gone by then.
        waiting.add_done_callback(lambda _: _WAITING.pop(text, None))
    _KNOWN.put(text, await asyncio.shield(asyncio.wrap_future(waiting)))


@cache
def _parser() -> Callable[[str], Node]:
    """Load the grammar: a tenth of a second, at the first expression of a process."""
    from gateway.node.sql.grammar import parse  # noqa: PLC0415

    return parse


def _compile(text: str) -> Condition | SqlError:
    # Errors are kept, too: a client whose expression is wrong asks again and again.
    try:
        whole = _parser()(text)
    except SqlError as error:
        return error
    return Condition(whole.evaluate, whole.terms)


class _Known:
    """Expressions that were compiled; those that were asked for last are kept."""

    def __init__(self) -> None:
        self._by_text: OrderedDict[str, Condition | SqlError] = OrderedDict()
        self._characters = 0

    def __contains__(self, text: str) -> bool:
        return text in self._by_text

    def get(self, text: str) -> Condition | SqlError | None:
        found = self._by_text.get(text)
        if found is not None:
            self._by_text.move_to_end(text)
        return found

    def put(self, text: str, compiled: Condition | SqlError) -> None:
        if text not in self._by_text:
            self._by_text[text] = compiled
            self._characters += len(text)
        while self._characters > _KEPT_CHARACTERS:
            oldest, _ = self._by_text.popitem(last=False)
            self._characters -= len(oldest)


_KNOWN = _Known()
_THREAD = ThreadPoolExecutor(1, "sql")
_WAITING: dict[str, Future[Condition | SqlError]] = {}
