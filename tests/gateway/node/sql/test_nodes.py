"""Depth is bounded, so that no message can exhaust the stack."""

from __future__ import annotations

import pytest

from ropeway.gateway.node.sql.nodes import MAX_DEPTH, SqlError
from tests.gateway.node.sql.parsing import parse

PAIRS = b"\x02a\x011\x02"


@pytest.mark.parametrize(
    "made",
    [
        lambda depth: "NOT " * (depth - 1) + "a",
        lambda depth: "a" + " IS NULL" * depth,
        lambda depth: "- " * (depth - 1) + "a IS NULL",
        lambda depth: "a" + " = 1" * depth,
        lambda depth: "(a AND " * (depth - 1) + "a" + ")" * (depth - 1),
    ],
)
def test_so_much_within_each_other_is_evaluated_and_more_refused(made):
    parse(made(MAX_DEPTH)).evaluate(PAIRS)
    for depth in (MAX_DEPTH + 1, 3000):
        with pytest.raises(SqlError, match=f"more than {MAX_DEPTH}.* allowed"):
            parse(made(depth))


def test_an_error_without_a_place_has_none():
    error = SqlError("too long")
    assert (str(error), error.line, error.column) == ("too long", 0, 0)
