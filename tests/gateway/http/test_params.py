"""Parameters: what is taken, and what is said of the rest."""

import pytest

from ropeway.gateway.http.params import Params, RefusedError


def test_what_is_given_is_taken_and_what_is_not_is_the_default():
    params = Params({"search": " a ", "limit": "7"}, "search", "limit", "kind")
    assert params.text("search") == "a"
    assert params.number("limit", 50, most=10) == 7
    assert params.number("offset", 3, most=10) == 3
    assert params.choice("kind", ("one", "two")) == "one"


@pytest.mark.parametrize("value", ["-1", "1.5", "x", "٣", "", "9" * 400, "11"])
def test_a_number_is_a_whole_one_within_its_bounds(value):
    with pytest.raises(RefusedError, match="allowed: a whole number from 0 to 10"):
        Params({"n": value}, "n").number("n", most=10)


def test_a_text_that_must_be_there_is_missed_and_a_long_one_refused():
    with pytest.raises(RefusedError, match="topic is missing"):
        Params({"topic": " "}, "topic").text("topic")
    with pytest.raises(RefusedError, match="has 301 characters; allowed: up to 300"):
        Params({"topic": "x" * 301}, "topic").text("topic")


def test_words_and_parameters_that_are_unknown_are_refused_with_what_is_allowed():
    with pytest.raises(RefusedError, match="kind is 'x'; allowed: one, two"):
        Params({"kind": "x"}, "kind").choice("kind", ("one", "two"))
    with pytest.raises(RefusedError, match="unknown parameter 'lmit'; allowed: limit"):
        Params({"lmit": "5"}, "limit")
