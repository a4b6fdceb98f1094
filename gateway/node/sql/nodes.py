"""What a part of an expression is while the whole is being compiled.

A node is finished: `evaluate` is the closure that computes its value from a message's
properties. The rest tells what may be built on it. Whether RocketMQ takes a part for a
constant or for a condition is decided by how it is written, so `-5` is no constant.

Source: the classes under filter/src/main/java, RocketMQ 5.5.0.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lark import Token

    Value = Any
    """Its `Kind` tells the type, or it is None, SQL's NULL. Text stays in UTF-8."""

    Evaluate = Callable[[bytes], Value]
    """Takes properties as `message.view_pairs` gives them. A ValueError says that there
    is no value, because something cannot be compared: then nothing matches."""

MAX_DEPTH = 100
"""Parts within parts. Each is a call within a call, of which Python allows 1000."""


class SqlError(Exception):
    """An expression cannot be used; the text says where and why.

    Args:
        problem: What came, and what is allowed.
        token: Where; None for the whole.
    """

    def __init__(self, problem: str, token: Token | None = None) -> None:
        self.line = 0 if token is None else token.line or 0
        self.column = 0 if token is None else token.column or 0
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        super().__init__(f"{place}{problem}")


class Kind(Enum):
    """What a value is unless it is NULL; known before there is any message."""

    TEXT = auto()
    INT = auto()
    """Of 32 bits, so texts that are compared with it have to fit, too."""
    LONG = auto()
    DOUBLE = auto()
    BOOLEAN = auto()


NUMBERS = frozenset({Kind.INT, Kind.LONG, Kind.DOUBLE})


class Node(NamedTuple):
    """A part of an expression."""

    token: Token
    """Where it stands."""
    kind: Kind
    evaluate: Evaluate
    name: bytes | None = None
    """A property's."""
    literal: bool = False
    """A constant as it is written: a number without a sign, a text, TRUE, NULL."""
    value: Value = None
    """That of a literal, and of a number with a sign."""
    depth: int = 0
    terms: int = 1
    """Properties that it looks up: what it costs to ask it."""


def build(token: Token, kind: Kind, evaluate: Evaluate, parts: Sequence[Node]) -> Node:
    """Make a node of others.

    Raises:
        SqlError: They are too deep.
    """
    depth = 1 + max(part.depth for part in parts)
    if depth > MAX_DEPTH:
        raise SqlError(
            f"more than {MAX_DEPTH} operators within each other; "
            f"allowed: {MAX_DEPTH}, and any number of AND or OR in a row",
            token,
        )
    terms = sum(part.terms for part in parts)
    return Node(token, kind, evaluate, depth=depth, terms=terms)
