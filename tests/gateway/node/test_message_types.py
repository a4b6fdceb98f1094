"""Types of messages, by their properties, and topics that take one type."""

import pytest

from ropeway.gateway.node.message_types import (
    WrongTypeError,
    check,
    type_of,
    type_of_topic,
)


@pytest.mark.parametrize(
    ("pairs", "kind"),
    [
        ({}, "NORMAL"),
        ({"KEYS": "a", "TAGS": "b"}, "NORMAL"),
        ({"TRAN_MSG": "true", "DELAY": "3"}, "TRANSACTION"),
        ({"TRAN_MSG": "false"}, "NORMAL"),
        ({"DELAY": "3", "__SHARDINGKEY": "k"}, "DELAY"),
        ({"TIMER_DELIVER_MS": "3"}, "DELAY"),
        ({"TIMER_DELAY_SEC": "3"}, "DELAY"),
        ({"TIMER_DELAY_MS": "3"}, "DELAY"),
        ({"__SHARDINGKEY": "k"}, "FIFO"),
        ({"_SYS_MSG_PRIORITY_": "1"}, "PRIORITY"),
        ({"__LITE_TOPIC": "l"}, "LITE"),
    ],
)
def test_a_message_has_the_type_that_its_properties_show(pairs, kind):
    assert type_of(pairs) == kind


def test_a_topic_is_normal_unless_it_says_otherwise():
    assert type_of_topic("orders", {}) == "NORMAL"
    assert type_of_topic("orders", {"message.type": "FIFO"}) == "FIFO"
    assert type_of_topic("%RETRY%g", {}) == type_of_topic("%DLQ%g", {}) == "MIXED"


@pytest.mark.parametrize(
    ("expected", "pairs"),
    [
        ("NORMAL", {}),
        ("FIFO", {"__SHARDINGKEY": "k"}),
        ("DELAY", {"DELAY": "1"}),
        ("TRANSACTION", {"TRAN_MSG": "true"}),
        ("MIXED", {"_SYS_MSG_PRIORITY_": "1"}),
        ("NORMAL", {"DELAY": "1", "TRANSFER_FLAG": "true"}),
    ],
)
def test_a_topic_takes_its_type_and_what_was_checked_before(expected, pairs):
    check(expected, pairs)


@pytest.mark.parametrize(
    ("expected", "pairs"),
    [("NORMAL", {"DELAY": "1"}), ("FIFO", {}), ("UNSPECIFIED", {})],
)
def test_a_topic_refuses_other_types(expected, pairs):
    words = f"is {expected}, but actual type is {type_of(pairs)}"
    with pytest.raises(WrongTypeError, match=words):
        check(expected, pairs)
