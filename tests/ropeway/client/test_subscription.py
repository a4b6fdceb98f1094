"""Tag expressions."""

import pytest

from ropeway.client.subscription import Sql, parse


@pytest.mark.parametrize("expression", ["*", "", "  "])
def test_a_star_wants_everything(expression):
    subscription = parse("t", expression, 1)
    assert subscription.wants("A")
    assert subscription.wants(None)
    assert subscription.data().sub_string == "*"


@pytest.mark.parametrize("expression", ["A||B", " A || B ", "B||A||"])
def test_only_named_tags_are_wanted(expression):
    subscription = parse("t", expression, 1)
    assert subscription.wants("B")
    assert not subscription.wants("C")
    assert not subscription.wants(None)


def test_heartbeats_carry_tags_with_javas_hash_codes():
    data = parse("t", "BB || Aa", 7).data()
    assert data.tags_set == ("Aa", "BB")
    assert data.code_set == (2112,)  # these two have one hash code
    assert data.sub_version == 7


def test_a_tag_is_told_from_another_with_the_same_hash():
    assert not parse("t", "Aa", 1).wants("BB")


def test_an_expression_without_a_tag_is_refused():
    with pytest.raises(ValueError, match="names no tag; allowed"):
        parse("t", "||", 1)


def test_a_condition_is_for_the_broker_to_read():
    subscription = parse("t", Sql(" a > 5 "), 1)
    assert subscription.wants("any")
    assert subscription.data().expression_type == "SQL92"
    assert subscription.data().sub_string == "a > 5"
    with pytest.raises(ValueError, match="an SQL condition is empty; allowed"):
        parse("t", Sql(" "), 1)
