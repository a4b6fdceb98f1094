"""What is grammatical and means nothing is refused, with its place."""

from __future__ import annotations

import pytest

from ropeway.gateway.node.sql.nodes import SqlError
from tests.gateway.node.sql.parsing import parse


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("a > 'x'", "column 5: 'x' beside >; allowed: numbers and properties"),
        ("TRUE < a", "column 1: TRUE beside <; allowed: numbers and properties"),
        ("a BETWEEN 'x' AND 5", "column 11: 'x' beside >=; allowed: numbers"),
        (
            "a BETWEEN 5 AND 3",
            "column 3: BETWEEN 5 AND 3; allowed: the lower one",
        ),
        ("a BETWEEN 1.5 AND 1", "column 3: BETWEEN 1.5 AND 1; allowed: the lower"),
        ("a = NULL", "column 3: NULL beside =; allowed: IS NULL, IS NOT NULL"),
        ("TRUE = 'x'", "column 6: TRUE compared with 'x'; allowed: 'x' = TRUE"),
        ("a AND 5", "column 7: 5 is no condition; allowed: a comparison"),
        ("-a", "column 1: - is no condition; allowed: a comparison"),
        ("5 IN ('x')", "column 3: 5 before IN; allowed: a property"),
        ("a > 9223372036854775808", "column 5: 9223372036854775808; allowed: up to"),
        ("a > 0.0", "column 5: 0.0; allowed: more than 0"),
        ("a > 1e999", "column 5: 1e999; allowed: more than 0, up to 1.79"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(expression: str, problem: str):
    with pytest.raises(SqlError) as refused:
        parse(expression)
    assert f"line 1, {problem}" in str(refused.value)


def test_texts_hold_quotes_and_every_letter():
    assert parse("a = 'it''s'").evaluate(b"\x02a\x01it's\x02") is True
    assert parse("a = ''''").evaluate(b"\x02a\x01'\x02") is True
    assert parse("a = '\ud800'").evaluate(b"\x02a\x01?\x02") is False


def test_in_a_row_and_and_or_cost_no_depth():
    assert parse(" AND ".join(["a = 1"] * 900)).depth == 2
    assert parse(" OR ".join(["a = 1"] * 900)).depth == 2
