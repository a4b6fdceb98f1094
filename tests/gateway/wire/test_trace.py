"""Traces as clients of each version write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.gateway.wire import trace
from ropeway.gateway.wire.trace import Step

ID = "7F0000012A"


def record(*fields: str) -> bytes:
    return "\x01".join(fields).encode() + b"\x02"


PUB = (
    "Pub",
    "10",
    "region",
    "billing",
    "orders",
    ID,
    "tag",
    "key",
    "h:1",
    "5",
    "7",
    "0",
)


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        # Before 4.3.1, since then, and with the client's host.
        ((*PUB, "true"), Step("Pub", ID, "billing", 10, 7, True)),
        ((*PUB, "0" * 32, "false"), Step("Pub", ID, "billing", 10, 7, False)),
        ((*PUB, "0" * 32, "true", "h:2"), Step("Pub", ID, "billing", 10, 7, True)),
        (
            ("SubBefore", "11", "region", "readers", "R1", ID, "2", "key"),
            Step("SubBefore", ID, "readers", 11, request="R1", retries=2),
        ),
        (
            ("SubAfter", "R1", ID, "3", "false", "key", "1"),
            Step("SubAfter", ID, "", None, 3, False, "R1"),
        ),
        (
            ("SubAfter", "R1", ID, "3", "true", "key", "0", "14", "readers"),
            Step("SubAfter", ID, "readers", 14, 3, True, "R1"),
        ),
        (
            ("EndTransaction", "12", "region", "billing", "orders", ID, "", "", "h:1"),
            Step("EndTransaction", ID, "billing", 12),
        ),
        (("Recall", "13", "r", "g", "orders", ID, "true"), Step("Recall", ID, "g", 13)),
    ],
)
def test_each_record_is_read(fields, step):
    assert trace.decode(record(*fields)) == [step]


def test_what_is_no_record_is_left_out():
    broken = [
        record("Pub", "10"),
        record("SubBefore", "soon", "r", "g", "R", ID, "0", "k"),
        record("Other", "1"),
        b"\xff\x02",
        record(*PUB, "true"),
    ]
    assert [one.kind for one in trace.decode(b"".join(broken))] == ["Pub"]


@given(st.binary())
def test_no_bytes_are_too_odd(body):
    trace.decode(body)


@given(st.lists(st.text(max_size=8), max_size=16), st.sampled_from([*trace._READERS]))
def test_no_fields_are_too_odd(fields, kind):
    trace.decode("\x01".join([kind, *fields]).encode(errors="replace"))
