"""From what the grammar finds to nodes: what RocketMQ refuses is refused here, too.

Each method is named like the rule whose parts it gets. The parts are nodes already, so
the whole is compiled when the parser is at its end, and nothing goes over a tree.

Source: SelectorParser.jj and the create methods of the expressions, RocketMQ 5.5.0.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from lark import Token, Transformer, v_args

from ropeway.gateway.node.sql import comparison, terms
from ropeway.gateway.node.sql.nodes import NUMBERS, Kind, Node, SqlError, build

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.sql.nodes import Evaluate, Value

_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1
_TESTS: dict[str, Callable[[bytes, bytes], bool]] = {
    "CONTAINS": bytes.__contains__,
    "STARTSWITH": bytes.startswith,
    "ENDSWITH": bytes.endswith,
}


@v_args(inline=True)
class Builder(Transformer[Token, Node]):
    """Makes a node of each rule's parts."""

    def start(self, whole: Node) -> Node:
        """All of it."""
        return _condition(whole)

    def disjunction(self, *parts: Any) -> Node:
        """OR, once or in a row."""
        return _joined(terms.some, parts[1], parts[::2])

    def conjunction(self, *parts: Any) -> Node:
        """AND, once or in a row."""
        return _joined(terms.every, parts[1], parts[::2])

    def equal(self, left: Node, sign: Token, right: Node) -> Node:
        """=."""
        for side in (left, right):
            if side.literal and side.value is None:
                raise SqlError(
                    f"NULL beside {sign}; allowed: IS NULL, IS NOT NULL", sign
                )
        if left.literal and right.literal and _is_boolean_alone(left, right):
            raise SqlError(
                f"{left.token} compared with {right.token}; "
                f"allowed: {right.token} {sign} {left.token}",
                sign,
            )
        return _boolean(sign, comparison.equal(left, right), left, right)

    def not_equal(self, left: Node, sign: Token, right: Node) -> Node:
        """<>."""
        return _not(sign, self.equal(left, sign, right))

    def is_null(self, operand: Node, sign: Token, _null: Token) -> Node:
        """IS NULL."""
        return _boolean(sign, terms.is_null(operand.evaluate), operand)

    def is_not_null(
        self, operand: Node, sign: Token, _not_sign: Token, null: Token
    ) -> Node:
        """IS NOT NULL."""
        return _not(sign, self.is_null(operand, sign, null))

    def ordered(self, left: Node, sign: Token, right: Node) -> Node:
        """<, <=, >, >=."""
        for side in (left, right):
            if side.kind is Kind.BOOLEAN or (side.literal and side.kind is Kind.TEXT):
                raise SqlError(
                    f"{side.token} beside {sign}; allowed: numbers and properties",
                    side.token,
                )
        return _boolean(sign, comparison.ordered(sign, left, right), left, right)

    def between(
        self, value: Node, sign: Token, low: Node, _and: Token, high: Node
    ) -> Node:
        """BETWEEN."""
        lowest = self.ordered(value, Token.new_borrow_pos("SIGN", ">=", sign), low)
        highest = self.ordered(value, Token.new_borrow_pos("SIGN", "<=", sign), high)
        if low.literal and high.literal and _is_above(low, high):
            raise SqlError(
                f"BETWEEN {low.token} AND {high.token}; allowed: the lower one first",
                sign,
            )
        return _joined(terms.every, sign, (lowest, highest))

    def not_between(
        self,
        value: Node,
        _not: Token,
        sign: Token,
        low: Node,
        _and: Token,
        high: Node,
    ) -> Node:
        """NOT BETWEEN."""
        below = self.ordered(value, Token.new_borrow_pos("SIGN", "<", sign), low)
        above = self.ordered(value, Token.new_borrow_pos("SIGN", ">", sign), high)
        return _joined(terms.some, sign, (below, above))

    def having(self, operand: Node, sign: Token, part: Token) -> Node:
        """CONTAINS, STARTSWITH, ENDSWITH."""
        return _having(operand, sign, part, negative=False)

    def not_having(self, operand: Node, _not: Token, sign: Token, part: Token) -> Node:
        """NOT CONTAINS, NOT STARTSWITH, NOT ENDSWITH."""
        return _having(operand, sign, part, negative=True)

    def within(self, operand: Node, sign: Token, *texts: Token) -> Node:
        """IN."""
        return _within(operand, sign, texts, negative=False)

    def not_within(
        self, operand: Node, _not: Token, sign: Token, *texts: Token
    ) -> Node:
        """NOT IN."""
        return _within(operand, sign, texts, negative=True)

    def minus(self, sign: Token, operand: Node) -> Node:
        """The sign of a number."""
        if operand.kind in NUMBERS and operand.value is not None:
            value = -operand.value
            return Node(sign, operand.kind, terms.constant(value), value=value, terms=0)
        return build(sign, Kind.TEXT, terms.negated(operand.evaluate), [operand])

    def inverted(self, sign: Token, operand: Node) -> Node:
        """NOT, which binds closer than any comparison."""
        return _not(sign, _condition(operand))

    def text(self, token: Token) -> Node:
        """A text in quotes."""
        return _literal(token, Kind.TEXT, _text(token))

    def whole(self, token: Token) -> Node:
        """A number without a fraction."""
        value = int(token.rstrip("lL"))
        if value > _LONG_MAX:
            raise SqlError(f"{token}; allowed: up to {_LONG_MAX}", token)
        return _literal(token, Kind.INT if value <= _INT_MAX else Kind.LONG, value)

    def fraction(self, token: Token) -> Node:
        """A number with a fraction or an exponent."""
        value = float(token)
        if not 0 < value <= sys.float_info.max:
            raise SqlError(
                f"{token}; allowed: more than 0, up to {sys.float_info.max}", token
            )
        return _literal(token, Kind.DOUBLE, value)

    def true(self, token: Token) -> Node:
        """TRUE."""
        return _literal(token, Kind.BOOLEAN, value=True)

    def false(self, token: Token) -> Node:
        """FALSE."""
        return _literal(token, Kind.BOOLEAN, value=False)

    def null(self, token: Token) -> Node:
        """NULL."""
        return _literal(token, Kind.BOOLEAN, None)

    def property(self, token: Token) -> Node:
        """A property, TAGS and KEYS among them."""
        name = token.encode()
        return Node(token, Kind.TEXT, terms.property_of(name), name=name)


def _literal(token: Token, kind: Kind, value: Value) -> Node:
    return Node(token, kind, terms.constant(value), literal=True, value=value, terms=0)


def _text(token: Token) -> bytes:
    # Half of a surrogate pair is no text; it matches none.
    return token[1:-1].replace("''", "'").encode(errors="surrogatepass")


def _condition(node: Node) -> Node:
    if node.kind is Kind.BOOLEAN:
        return node
    if node.name is not None:
        return _boolean(node.token, terms.as_condition(node.evaluate), node)
    raise SqlError(f"{node.token} is no condition; allowed: a comparison", node.token)


def _boolean(token: Token, evaluate: Evaluate, *parts: Node) -> Node:
    return build(token, Kind.BOOLEAN, evaluate, parts)


def _not(sign: Token, condition: Node) -> Node:
    return _boolean(sign, terms.inverted(condition.evaluate), condition)


def _joined(
    join: Callable[[tuple[Evaluate, ...]], Evaluate],
    sign: Token,
    parts: tuple[Node, ...],
) -> Node:
    conditions = [_condition(part) for part in parts]
    evaluate = join(tuple(one.evaluate for one in conditions))
    return _boolean(sign, evaluate, *conditions)


def _is_boolean_alone(left: Node, right: Node) -> bool:
    return left.kind is Kind.BOOLEAN and right.kind is not Kind.BOOLEAN


def _is_above(low: Node, high: Node) -> bool:
    # Wholes as they are; a fraction on either side makes fractions of both.
    if Kind.DOUBLE in (low.kind, high.kind):
        return float(low.value) > float(high.value)
    return bool(low.value > high.value)


def _having(operand: Node, sign: Token, part: Token, *, negative: bool) -> Node:
    test = _TESTS[sign.upper()]
    evaluate = terms.having(operand.evaluate, test, _text(part), negative=negative)
    return _boolean(sign, evaluate, operand)


def _within(
    operand: Node, sign: Token, texts: tuple[Token, ...], *, negative: bool
) -> Node:
    if operand.name is None:
        raise SqlError(f"{operand.token} before {sign}; allowed: a property", sign)
    wanted = frozenset(map(_text, texts))
    evaluate = terms.one_of(operand.evaluate, wanted, negative=negative)
    return _boolean(sign, evaluate, operand)
