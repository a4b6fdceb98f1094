"""Errors by what a caller can do."""

import pytest

from ropeway.client.errors import (
    ClientClosedError,
    RequestTimeoutError,
    ResponseError,
    TopicNotFoundError,
    may_succeed_elsewhere,
)


@pytest.mark.parametrize("code", [1, 2, 14, 16, 17, 204, 205])
def test_javas_retryable_codes_may_succeed_elsewhere(code):
    assert may_succeed_elsewhere(ResponseError(code, None, "a:1"))


@pytest.mark.parametrize(
    "error",
    [
        ResponseError(13, None, "a:1"),
        ClientClosedError("closed"),
        TopicNotFoundError("none"),
    ],
)
def test_other_errors_may_not(error):
    assert not may_succeed_elsewhere(error)


def test_a_lost_connection_may():
    assert may_succeed_elsewhere(RequestTimeoutError("a:1", "slow"))


def test_a_code_without_a_name_is_given_as_number():
    assert ResponseError(4711, "what", "a:1").name == "code 4711"
