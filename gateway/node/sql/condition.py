"""A whole expression, compiled: made once, asked for each message."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from functools import cache
from typing import TYPE_CHECKING

from ropeway.gateway.node.sql.nodes import SqlError
from ropeway.gateway.wire import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.gateway.node.fair_queueing import Slices
    from ropeway.gateway.node.flow import Flow
    from ropeway.gateway.node.sql.nodes import Evaluate, Node

MAX_CHARACTERS = 16_384
"""Of an expression: so many take some 30 ms to compile."""

QUICK_CHARACTERS = 128
"""So many take a millisecond to compile, which may be done on the loop once the grammar
is there."""

_KEPT_CHARACTERS = 256 * 1024
"""Expressions that are kept compiled have no more, all together. A pull may bring its
own, and each character takes some 50 bytes."""
_MOST_WAITING = 256
"""Requests of a flow that wait for an expression to be compiled: what is refused is
soon read to its end when its client has gone, and what waits is then dropped."""
_WAITING_BYTES = 4
"""What waits keeps for each character: as it came, and as text."""


class NotCompiledError(Exception):
    """An expression cannot be compiled at once; `compile_later` does it.

    Args:
        text: The expression.
    """

    def __init__(self, text: str) -> None:
        super().__init__("an expression has to be compiled first")
        self.text = text


class CompilerBusyError(Exception):
    """An expression is not compiled: too many wait for that, or nobody for this one."""


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
        *_, known = _compile(text)
        assert known is not None, "the last step gives it"
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


async def compile_later(
    text: str, slices: Slices, is_wanted: Callable[[], bool]
) -> None:
    """Compile an expression in slices, so that `compile_quickly` has it then.

    Args:
        text: The expression.
        slices: In whose turns. One expression of a flow is compiled at a time.
        is_wanted: Whether anybody waits for it still; if not, it is dropped.

    Raises:
        CompilerBusyError: Too many of the flow wait for that, or nobody for this one.
    """
    flow = slices.flow
    if _WAITING[flow] >= _MOST_WAITING:
        raise CompilerBusyError(
            f"{_WAITING[flow]} expressions of yours wait to be compiled; try again"
        )
    _WAITING[flow] += 1
    try:
        await slices.begin_large(_WAITING_BYTES * len(text))
        try:
            await _compile_in_slices(text, slices, is_wanted)
        finally:
            slices.end_large()
    finally:
        _WAITING[flow] -= 1
        if not _WAITING[flow]:
            del _WAITING[flow]


async def _compile_in_slices(
    text: str, slices: Slices, is_wanted: Callable[[], bool]
) -> None:
    if not _parser.cache_info().currsize:
        await asyncio.to_thread(_parser)
    steps = _compile(text)
    # Somebody else may have compiled it meanwhile.
    while text not in _KNOWN:
        await slices.pause()
        if not is_wanted():
            raise CompilerBusyError("nobody waits for the expression any more")
        if (compiled := next(steps)) is not None:
            _KNOWN.put(text, compiled)


@cache
def _parser() -> Callable[[str], Iterator[Node | None]]:
    """Load the grammar: a tenth of a second, at the first expression of a process."""
    from ropeway.gateway.node.sql.grammar import parse_in_steps  # noqa: PLC0415

    return parse_in_steps


def _compile(text: str) -> Iterator[Condition | SqlError | None]:
    """Compile in steps; the last one gives the condition, or why there is none."""
    # Errors are kept, too: a client whose expression is wrong asks again and again.
    try:
        for whole in _parser()(text):
            yield None if whole is None else Condition(whole.evaluate, whole.terms)
    except SqlError as error:
        yield error


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
_WAITING: Counter[Flow] = Counter()
