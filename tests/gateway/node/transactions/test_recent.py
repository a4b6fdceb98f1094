"""The newest half messages are at hand, and memory is bounded."""

from __future__ import annotations

from ropeway.gateway.node.transactions import half_message as half_messages
from ropeway.gateway.node.transactions.recent import Recent
from ropeway.gateway.wire import message
from ropeway.gateway.wire.message import Message


def half(offset: int, body: bytes = b"x" * 900) -> half_messages.Half:
    return half_messages.read(
        message.encode(
            Message(
                topic="half",
                queue_id=0,
                queue_offset=offset,
                message_id=offset,
                body=body,
                properties="",
            )
        )
    )


def test_a_half_message_is_there_once():
    recent = Recent()
    one = half(7)
    recent.keep(one)
    assert recent.take(8) is None
    assert recent.take(7) is one
    assert recent.take(7) is None


def test_the_oldest_go_when_there_are_too_many():
    recent = Recent(most_bytes=10_000)
    for offset in range(100):
        recent.keep(half(offset))
    there = [offset for offset in range(100) if recent.take(offset)]
    most = 10_000 // len(half(0).data)
    assert there == list(range(100 - most, 100))
    # What was taken is counted no more.
    for offset in (1, 2):
        recent.keep(half(offset))
    assert recent.take(1)
    assert recent.take(2)
    recent.keep(half(0, b"x" * 20_000))
    assert recent.take(0) is None
