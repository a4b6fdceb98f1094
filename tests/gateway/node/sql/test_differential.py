"""Our filter and RocketMQ's own classes agree, on listed cases and on random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ropeway.gateway.node.sql import SqlError, compile_condition
from ropeway.gateway.wire import properties
from tests.gateway.node.sql.cases import CUT_SHORT, PROPERTIES, REFUSED, SEMANTICS
from tests.gateway.node.sql.rocketmq_filter import RocketMqFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.jvm

WORDS = {True: "true", False: "false", None: "null", ValueError: "error"}


@pytest.fixture(scope="module")
def theirs() -> Iterator[RocketMqFilter]:
    started = RocketMqFilter()
    yield started
    started.stop()


def ours(expression: str, texts: list[str]) -> list[str]:
    condition = compile_condition(expression)
    answers = []
    for text in texts:
        try:
            answers.append(WORDS[condition.evaluate(b"\x02%b\x02" % text.encode())])
        except ValueError:
            answers.append("error")
    return answers


def test_the_listed_answers_are_rocketmqs(theirs: RocketMqFilter):
    expressions = [expression for expression, _ in SEMANTICS]
    found = theirs.answers(expressions, [properties.dump(PROPERTIES)])
    wanted = [[WORDS[answer]] for _, answer in SEMANTICS]
    assert dict(zip(expressions, found, strict=True)) == dict(
        zip(expressions, wanted, strict=True)
    )


def test_the_listed_refusals_are_rocketmqs(theirs: RocketMqFilter):
    found = zip(REFUSED, theirs.answers(REFUSED, []), strict=True)
    assert [one for one, answers in found if answers is not None] == []


def test_rocketmq_does_not_look_behind_a_whole_condition(theirs: RocketMqFilter):
    texts = [properties.dump(PROPERTIES)]
    whole = [expression for expression, _ in CUT_SHORT]
    before = [expression[: column - 1] for expression, column in CUT_SHORT]
    assert theirs.answers(whole, texts) == [ours(one, texts) for one in before]


NAMES = st.sampled_from(["a", "b", "c", "TAGS"])
TEXTS = st.one_of(
    st.sampled_from(["1", "-1", "+2", "1.5", "true", "TRUE", "NaN", "-NaN", "x", "xy"]),
    st.sampled_from(["Infinity", "-Infinity", "1e400", "0x1p3", "0X.8P1", "1f", "2D"]),
    st.sampled_from(
        [" 1 ", "1_0", "\u0663", "\U0001d7d8", "-0.0", "0.0", "-", "1e", "."]
    ),
    st.sampled_from(["2147483647", "2147483648", "9223372036854775808", "00"]),
    st.integers(-(2**65), 2**65).map(str),
    st.floats().map(str),
    st.text("xy'", min_size=1, max_size=3),
    st.text(
        st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]),
        min_size=1,
        max_size=4,
    ),
)
MESSAGES = st.dictionaries(NAMES, TEXTS).map(properties.dump)
RAW = st.lists(
    st.sampled_from(["a", "b", "\x01", "\x02", "a\x011\x02", "a\x01x\x02", "1"]),
    max_size=8,
).map("".join)
QUOTED = TEXTS.map(lambda text: "'" + text.replace("'", "''") + "'")
NUMBERS = st.one_of(
    st.sampled_from(["0", "1", "2", "10L", "2147483647", "2147483648", "1.5", "1e1"]),
    st.sampled_from(["0.0", "1e400", "9223372036854775807", "9223372036854775808"]),
)
OPERANDS = st.one_of(NAMES, NAMES, NUMBERS, QUOTED, st.sampled_from(["TRUE", "NULL"]))


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def filled(*parts: object) -> st.SearchStrategy[str]:
        made = [st.just(part) if isinstance(part, str) else part for part in parts]
        return st.tuples(*made).map(" ".join)

    comparison = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    maybe = st.sampled_from(["", "NOT"])
    having = st.sampled_from(["CONTAINS", "startswith", "ENDSWITH"])
    listed = st.lists(QUOTED, min_size=1, max_size=6).map(", ".join)
    return st.one_of(
        filled(inner, comparison, inner),
        filled(inner, comparison, inner),
        filled(inner, st.sampled_from(["AND", "or"]), inner),
        filled(inner, "AND", inner, "OR", inner),
        filled(st.sampled_from(["NOT", "-", "+"]), inner),
        filled("(", inner, ")"),
        filled("(", inner, ")"),
        filled(inner, "IS", maybe, "NULL"),
        filled(inner, maybe, having, QUOTED),
        filled(inner, maybe, "BETWEEN", inner, "AND", inner),
        filled(inner, maybe, "IN (", listed, ")"),
    )


EXPRESSIONS = st.recursive(OPERANDS, larger, max_leaves=8)
PIECES = [
    *["a", "b", "5", "1.5", "'x'", "'", "(", ")", ",", "=", "<>", "<", ">", "!", "-"],
    *["NOT", "AND", "OR", "IN", "IS", "NULL", "TRUE", "BETWEEN", "CONTAINS", "/*"],
    *["*/", "--", "\n", ".", "e", "L", "0", "+", "\u017f", "\x00"],
]
SOUP = st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join) | st.lists(
    st.sampled_from(PIECES), max_size=6
).map("".join)
many = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def agree(theirs: RocketMqFilter, expressions: list[str], texts: list[str]) -> None:
    found = theirs.answers(expressions, texts)
    for expression, answers in zip(expressions, found, strict=True):
        try:
            mine = ours(expression, texts)
        except SqlError as error:
            if answers is None:
                continue
            # They do not look behind what is a whole condition; see `CUT_SHORT`.
            lines = expression.split("\n")[: error.line]
            lines[-1] = lines[-1][: error.column - 1]
            mine = ours("\n".join(lines), texts)
        assert answers == mine, expression


# Ten at a time: the way to the JVM and back is most of the time.
@many
@given(
    st.lists(EXPRESSIONS, min_size=10, max_size=10),
    st.lists(MESSAGES | RAW, min_size=1, max_size=6),
)
def test_conditions_get_the_same_answers(
    theirs: RocketMqFilter, expressions: list[str], texts: list[str]
):
    agree(theirs, expressions, texts)


@many
@given(
    st.lists(SOUP, min_size=10, max_size=10), st.lists(MESSAGES, min_size=1, max_size=2)
)
def test_what_is_none_is_refused_alike(
    theirs: RocketMqFilter, expressions: list[str], texts: list[str]
):
    agree(theirs, expressions, texts)
