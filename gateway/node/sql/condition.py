"""A whole expression, compiled: made once, asked for each message."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gateway.node.sql.grammar import parse
from gateway.node.sql.nodes import SqlError
from gateway.wire import message

if TYPE_CHECKING:
    from gateway.node.sql.nodes import Evaluate

MAX_CHARACTERS = 16_384
"""Of an expression: so many take a tenth of a second to compile."""

_KEPT = 100
"""Expressions that are kept compiled, like in RocketMQ: a pull may bring its own."""


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
    known = _compiled(text)
    if isinstance(known, SqlError):
        raise known.with_traceback(None)
    return known


@lru_cache(maxsize=_KEPT)
def _compiled(text: str) -> Condition | SqlError:
    # Errors are kept, too: a client whose expression is wrong asks again and again.
    try:
        whole = parse(text)
    except SqlError as error:
        return error
    return Condition(whole.evaluate, whole.terms)
