"""What queues hold, and how far groups have come in them."""

from __future__ import annotations

import re

import msgspec

from gateway.wire import bodies
from ropeway.client.message import MessageQueue


class QueueSpan(msgspec.Struct, frozen=True):
    """What a queue holds: from its oldest offset to one past its newest."""

    queue: MessageQueue
    begin: int
    end: int


class QueueLag(msgspec.Struct, frozen=True):
    """How far a group has come in a queue."""

    queue: MessageQueue
    committed: int
    """Where the group goes on."""
    end: int
    """One past the queue's newest message."""

    @property
    def lag(self) -> int:
        """How many messages are left to read."""
        return max(0, self.end - self.committed)


class _OffsetWrapper(msgspec.Struct, rename="camel", frozen=True):
    broker_offset: int
    consumer_offset: int


# fastjson writes a map whose keys are objects as {{...}:{...},{...}:{...}}, which is
# no JSON; neither side of a pair has an object within.
_PAIR = re.compile(rb"(\{[^{}]*\})\s*:\s*(\{[^{}]*\})")


def read_lags(body: bytes) -> list[QueueLag]:
    """Read the answer to GET_CONSUME_STATS.

    Raises:
        msgspec.DecodeError: It is not one.
    """
    lags = []
    for key, value in _PAIR.findall(body):
        queue = msgspec.json.decode(key, type=bodies.MessageQueue)
        offsets = msgspec.json.decode(value, type=_OffsetWrapper)
        lags.append(
            QueueLag(
                MessageQueue(queue.topic, queue.broker_name, queue.queue_id),
                offsets.consumer_offset,
                offsets.broker_offset,
            )
        )
    return sorted(lags, key=lambda lag: lag.queue)
