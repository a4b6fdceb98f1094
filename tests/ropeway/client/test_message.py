"""What users send and receive."""

import pytest

from ropeway.client import Message, MessageQueue


def test_queues_sort_by_topic_then_broker_then_number():
    queues = [
        MessageQueue("u", "a", 0),
        MessageQueue("t", "b", 0),
        MessageQueue("t", "a", 10),
        MessageQueue("t", "a", 9),
    ]
    assert sorted(queues) == queues[::-1]


def test_messages_cannot_be_changed():
    message = Message("t", b"x")
    with pytest.raises(AttributeError, match="immutable"):
        message.body = b"y"


def test_messages_do_not_share_their_properties():
    assert Message("t", b"x").properties is not Message("t", b"x").properties
