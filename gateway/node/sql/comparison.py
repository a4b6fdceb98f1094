"""How values of each two kinds compare: the tables behind =, <, BETWEEN and the like.

Source: ComparisonExpression.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from ropeway.gateway.node.sql.conversions import (
    compare_doubles,
    to_boolean,
    to_double,
    to_int,
    to_long,
    to_place,
)
from ropeway.gateway.node.sql.nodes import NUMBERS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.sql.nodes import Evaluate, Node, Value

    Compare = Callable[[Value, Value], bool]
    """Compares two values that are not NULL."""

_READ: dict[Kind, Callable[[bytes], Value]] = {
    Kind.INT: to_int,
    Kind.LONG: to_long,
    Kind.DOUBLE: to_double,
    Kind.BOOLEAN: to_boolean,
}
"""What a text becomes when it is compared with something else."""

ORDERS: dict[str, Compare] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def equal(left: Node, right: Node) -> Evaluate:
    """Whether two values are the same.

    Two NULLs are, and NULL on the right alone is something else. This is not SQL's
    way, but RocketMQ's.
    """
    first, second = left.evaluate, right.evaluate
    same = _sameness(left.kind, right.kind)
    if right.value is not None:
        if left.kind is Kind.TEXT and right.kind is not Kind.TEXT:
            return _read_against(first, _READ[right.kind], operator.eq, right.value)
        return _against(first, same, right.value)

    def evaluate(pairs: bytes) -> bool | None:
        one, other = first(pairs), second(pairs)
        if one is None:
            return True if other is None else None
        return other is not None and same(one, other)

    return evaluate


def _against(operand: Evaluate, holds: Compare, value: Value) -> Evaluate:
    """A comparison with a constant, as nearly all are: it needs no call for that."""

    def evaluate(pairs: bytes) -> bool | None:
        one = operand(pairs)
        return None if one is None else holds(one, value)

    return evaluate


def _read_against(
    operand: Evaluate, read: Callable[[bytes], Value], holds: Compare, value: Value
) -> Evaluate:
    """The same where a text has to be read first."""

    def evaluate(pairs: bytes) -> bool | None:
        text = operand(pairs)
        return None if text is None else holds(read(text), value)

    return evaluate


def _sameness(left: Kind, right: Kind) -> Compare:
    if left is right or {left, right} <= NUMBERS - {Kind.DOUBLE}:
        return operator.eq
    if left is Kind.TEXT:
        read = _READ[right]
        return lambda text, value: read(text) == value
    if right is Kind.TEXT:
        if left is Kind.BOOLEAN:
            return _incomparable
        read = _READ[left]
        return lambda value, text: value == read(text)
    if Kind.BOOLEAN in (left, right):
        return _different
    return lambda one, other: float(one) == float(other)


def _incomparable(_one: Value, _other: Value) -> bool:
    # Java fails on a cast here, where the text stands on the right.
    raise ValueError


def _different(_one: Value, _other: Value) -> bool:
    return False


def ordered(symbol: str, left: Node, right: Node) -> Evaluate:
    """Whether two values are in this order; both texts and numbers are numbers here."""
    first, second = left.evaluate, right.evaluate
    holds = _ordering(ORDERS[symbol], left.kind, right.kind)
    if right.value is not None:
        if left.kind is Kind.TEXT and right.kind in NUMBERS:
            # No constant with a fraction is 0, so this has Java's order.
            read = to_place if right.kind is Kind.DOUBLE else _READ[right.kind]
            return _read_against(first, read, ORDERS[symbol], right.value)
        return _against(first, holds, right.value)

    def evaluate(pairs: bytes) -> bool | None:
        one = first(pairs)
        if one is None:
            return None
        other = second(pairs)
        return None if other is None else holds(one, other)

    return evaluate


def _ordering(holds: Compare, left: Kind, right: Kind) -> Compare:
    whole = NUMBERS - {Kind.DOUBLE}
    if {left, right} <= whole:
        return holds
    if left is Kind.TEXT and right in whole:
        read = _READ[right]
        return lambda text, value: holds(read(text), value)
    if right is Kind.TEXT and left in whole:
        read = _READ[left]
        return lambda value, text: holds(value, read(text))
    one_as = to_double if left is Kind.TEXT else float
    other_as = to_double if right is Kind.TEXT else float
    return lambda one, other: holds(compare_doubles(one_as(one), other_as(other)), 0)
