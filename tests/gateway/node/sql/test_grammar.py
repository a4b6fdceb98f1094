"""Syntax errors: where, what came, and what is allowed there."""

from __future__ import annotations

import pytest

from ropeway.gateway.node.sql.nodes import SqlError
from tests.gateway.node.sql.cases import CUT_SHORT, REFUSED
from tests.gateway.node.sql.parsing import parse


@pytest.mark.parametrize("expression", REFUSED)
def test_what_rocketmq_refuses_is_refused(expression: str):
    with pytest.raises(SqlError):
        parse(expression)


@pytest.mark.parametrize(("expression", "column"), CUT_SHORT)
def test_what_stands_behind_a_whole_condition_is_refused(expression: str, column: int):
    with pytest.raises(SqlError, match="the end") as refused:
        parse(expression)
    assert (refused.value.line, refused.value.column) == (1, column)
    parse(expression[: column - 1])


OPERAND = """\
a property, a number, a text in single quotes, TRUE, FALSE, NULL, '(', +, -, NOT"""
OPERATOR = """\
<, <=, <>, =, >, >=, AND, BETWEEN, CONTAINS, ENDSWITH, IN, IS, NOT, OR, STARTSWITH, \
the end"""


@pytest.mark.parametrize(
    ("expression", "line", "column", "came", "allowed"),
    [
        ("a > 5 AND\n  b LIKE 'x%'", 2, 5, "'LIKE'", OPERATOR),
        ("a > 5 AND", 1, 10, "the end", OPERAND),
        ("a > 5 AND\n", 2, 1, "the end", OPERAND),
        ("", 1, 1, "the end", OPERAND),
        ("a IN ('x'", 1, 10, "the end", "')', ','"),
        ("a IN ('x';)", 1, 10, "';'", "')', ','"),
        ("a IN (1)", 1, 7, "'1'", "a text in single quotes"),
        ("a IS 5", 1, 6, "'5'", "NOT, NULL"),
        ("(a = 1", 1, 7, "the end", f"')', {OPERATOR}".removesuffix(", the end")),
        (
            "a = 'x",
            *(1, 5, "a text without its closing quote"),
            "'text', and '' for a quote",
        ),
        ("a /* x", 1, 3, "a comment without its end", "/* comment */"),
    ],
)
def test_an_error_says_where_and_what_is_allowed(
    expression: str, line: int, column: int, came: str, allowed: str
):
    with pytest.raises(SqlError) as refused:
        parse(expression)
    assert str(refused.value) == (
        f"line {line}, column {column}: {came}; allowed: {allowed}"
    )


def test_what_came_is_not_repeated_in_full():
    with pytest.raises(SqlError) as refused:
        parse("a = 'x' " + "y" * 5000)
    assert len(str(refused.value)) < 300


def test_brackets_may_be_as_deep_as_they_like():
    assert parse("(" * 5000 + "a = 1" + ")" * 5000).evaluate(b"\x02a\x011\x02") is True


def test_reserved_words_are_ascii():
    assert parse("not a IS null").terms == 1
    with pytest.raises(SqlError):
        parse("a I\u017f NULL")
