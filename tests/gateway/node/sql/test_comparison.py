"""Comparisons of each two kinds."""

from __future__ import annotations

from itertools import product

import pytest
from lark import Token

from ropeway.gateway.node.sql import comparison
from ropeway.gateway.node.sql.nodes import Kind, Node

SIGN = Token("SIGN", "")
ONES = {
    Kind.TEXT: b"1",
    Kind.INT: 1,
    Kind.LONG: 1,
    Kind.DOUBLE: 1.0,
    Kind.BOOLEAN: True,
}


def node(kind: Kind, value: object, *, fixed: bool) -> Node:
    return Node(SIGN, kind, lambda _pairs: value, value=value if fixed else None)


@pytest.mark.parametrize(("left", "right"), list(product(Kind, repeat=2)))
@pytest.mark.parametrize("fixed", [False, True])
def test_one_equals_one_but_where_a_boolean_meets_what_is_none(
    left: Kind, right: Kind, fixed: bool
):
    evaluate = comparison.equal(
        node(left, ONES[left], fixed=False), node(right, ONES[right], fixed=fixed)
    )
    if (left, right) == (Kind.BOOLEAN, Kind.TEXT):
        with pytest.raises(ValueError):
            evaluate(b"")
    else:
        # The text 1 is a number, but it does not say true.
        assert evaluate(b"") is (left is right or Kind.BOOLEAN not in (left, right))


@pytest.mark.parametrize(("left", "right"), list(product(list(Kind)[:-1], repeat=2)))
@pytest.mark.parametrize("fixed", [False, True])
def test_numbers_and_texts_are_ordered_alike(left: Kind, right: Kind, fixed: bool):
    for symbol, holds in (("<", False), ("<=", True), (">", False), (">=", True)):
        evaluate = comparison.ordered(
            symbol,
            node(left, ONES[left], fixed=False),
            node(right, ONES[right], fixed=fixed),
        )
        assert evaluate(b"") is holds


def test_null_is_unknown_and_two_are_the_same():
    null, one = node(Kind.TEXT, None, fixed=False), node(Kind.TEXT, b"1", fixed=False)
    assert comparison.ordered("<", null, one)(b"") is None
    assert comparison.ordered("<", one, null)(b"") is None
    assert comparison.equal(null, null)(b"") is True
    assert comparison.equal(null, one)(b"") is None
    assert comparison.equal(one, null)(b"") is False
