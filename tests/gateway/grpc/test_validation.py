"""What clients may name."""

from __future__ import annotations

import pytest

from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.protocol import Code, Duration, Resource
from ropeway.gateway.grpc.statuses import RefusedError


def test_a_namespace_is_part_of_the_name():
    assert validation.topic(Resource(name="orders")) == "orders"
    spaced = Resource(resource_namespace="shop", name="orders")
    assert validation.topic(spaced) == "shop%orders"


@pytest.mark.parametrize(
    ("check", "name", "code"),
    [
        (validation.topic, "", Code.ILLEGAL_TOPIC),
        (validation.topic, "a b", Code.ILLEGAL_TOPIC),
        (validation.topic, "x" * 300, Code.ILLEGAL_TOPIC),
        (validation.topic, "RMQ_SYS_TRANS_HALF_TOPIC", Code.ILLEGAL_TOPIC),
        (validation.group, "", Code.ILLEGAL_CONSUMER_GROUP),
        (validation.group, "a/b", Code.ILLEGAL_CONSUMER_GROUP),
        (validation.group, "CID_RMQ_SYS_TRANS", Code.ILLEGAL_CONSUMER_GROUP),
    ],
)
def test_names_that_cannot_be_are_refused(check, name, code):
    with pytest.raises(RefusedError) as refused:
        check(Resource(name=name))
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "the invisibleTime is too small. min is 10000"),
        (9, "the invisibleTime is too small. min is 10000"),
        (12 * 3600 + 1, "the invisibleTime is too large. max is 43200000"),
        (1 << 40, "the invisibleTime is too large. max is 43200000"),
    ],
)
def test_invisible_times_have_limits(seconds, words):
    with pytest.raises(RefusedError) as refused:
        validation.invisible_ms(Duration(seconds=seconds), validation.MIN_INVISIBLE_MS)
    assert refused.value.code == Code.ILLEGAL_INVISIBLE_TIME
    assert str(refused.value).startswith(words)
    assert validation.invisible_ms(Duration(seconds=10), 10_000) == 10_000
