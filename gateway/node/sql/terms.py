"""The leaves and joints of a compiled expression: properties, texts, AND, OR, NOT.

Source: PropertyExpression, UnaryExpression, LogicExpression and the classes within
ComparisonExpression, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ropeway.gateway.node.sql.nodes import Evaluate, Value

_PAIR_END = b"\x02"
_NAME_END = b"\x01"


def constant(value: Value) -> Evaluate:
    """Always the same."""
    return lambda _pairs: value


def property_of(name: bytes) -> Evaluate:
    """The value of a property, found without taking the others apart."""
    needle = _PAIR_END + name + _NAME_END
    skipped = len(needle)

    def evaluate(pairs: bytes) -> bytes | None:
        # The last one counts, as where properties are parsed into a map.
        start = pairs.rfind(needle)
        while start >= 0:
            if value := pairs[start + skipped : pairs.find(_PAIR_END, start + skipped)]:
                return value
            # A pair without a value is none; one before it may have one.
            start = pairs.rfind(needle, 0, start + 1)
        return None

    return evaluate


def negated(number: Evaluate) -> Evaluate:
    """The sign before what is no number: NULL, when that has a value at all."""

    def evaluate(pairs: bytes) -> None:
        number(pairs)

    return evaluate


def as_condition(value: Evaluate) -> Evaluate:
    """A property where a condition has to be: it is there, but it is text, not TRUE."""

    def evaluate(pairs: bytes) -> bool | None:
        return None if value(pairs) is None else False

    return evaluate


def inverted(condition: Evaluate) -> Evaluate:
    """NOT."""

    def evaluate(pairs: bytes) -> bool | None:
        value = condition(pairs)
        return None if value is None else not value

    return evaluate


def is_null(operand: Evaluate) -> Evaluate:
    """IS NULL."""
    return lambda pairs: operand(pairs) is None


def one_of(operand: Evaluate, texts: frozenset[bytes], *, negative: bool) -> Evaluate:
    """IN, or NOT IN."""

    def evaluate(pairs: bytes) -> bool | None:
        text = operand(pairs)
        return None if text is None else (text in texts) is not negative

    return evaluate


def having(
    operand: Evaluate, test: Callable[[bytes, bytes], bool], part: bytes, negative: bool
) -> Evaluate:
    """CONTAINS, STARTSWITH, ENDSWITH or NOT of them; no text has an empty part."""

    def evaluate(pairs: bytes) -> bool:
        text = operand(pairs)
        if not part or not isinstance(text, bytes):
            return False
        return test(text, part) is not negative

    return evaluate


def every(conditions: Sequence[Evaluate]) -> Evaluate:
    """AND."""

    def evaluate(pairs: bytes) -> bool | None:
        answer: bool | None = True
        for condition in conditions:
            value = condition(pairs)
            if not value:
                if value is not None:
                    return False
                answer = None
        return answer

    return evaluate


def some(conditions: Sequence[Evaluate]) -> Evaluate:
    """OR."""

    def evaluate(pairs: bytes) -> bool | None:
        answer: bool | None = False
        for condition in conditions:
            value = condition(pairs)
            if value:
                return True
            if value is None:
                answer = None
        return answer

    return evaluate
