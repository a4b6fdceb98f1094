"""What queues hold, and how far groups have come in them."""

from __future__ import annotations

import re

import msgspec

from ropeway.client.message import MessageQueue
from ropeway.gateway.wire import bodies


class QueueSpan(msgspec.Struct, frozen=True):
    """What a queue holds: from its oldest offset to one past its newest."""

    queue: MessageQueue
    begin: int
    end: int
    newest_ms: int = 0
    """When the newest message was stored; 0 where that was not asked for."""


class QueueLag(msgspec.Struct, frozen=True):
    """How far a group has come in a queue."""

    queue: MessageQueue
    committed: int
    """Where the group goes on; -1 where it has committed nothing."""
    end: int
    """One past the queue's newest message."""
    pulled: int = 0
    """How far consumers have got messages, done or not."""
    done_ms: int = 0
    """When the last message that is done was stored; 0 where it is not known."""

    @property
    def lag(self) -> int:
        """How many messages are left to read; all where nothing is committed."""
        return max(0, self.end - max(0, self.committed))


class _OffsetWrapper(msgspec.Struct, rename="camel", frozen=True):
    broker_offset: int
    consumer_offset: int
    pull_offset: int = 0
    last_timestamp: int = 0


class _TopicOffset(msgspec.Struct, rename="camel", frozen=True):
    max_offset: int
    min_offset: int
    last_update_timestamp: int = 0


# fastjson writes a map whose keys are objects as {{...}:{...},{...}:{...}}, which is
# no JSON; neither side of a pair has an object within.
_PAIR = re.compile(rb"(\{[^{}]*\})\s*:\s*(\{[^{}]*\})")


_NUMBER = re.compile(rb"(\{[^{}]*\})\s*:\s*(-?\d+)")


def read_lags(body: bytes) -> list[QueueLag]:
    """Read the answer to GET_CONSUME_STATS.

    Raises:
        msgspec.DecodeError: It is not one.
    """
    lags = []
    for key, value in _PAIR.findall(body):
        offsets = msgspec.json.decode(value, type=_OffsetWrapper)
        lags.append(
            QueueLag(
                _queue(key),
                offsets.consumer_offset,
                offsets.broker_offset,
                max(offsets.pull_offset, offsets.consumer_offset),
                offsets.last_timestamp,
            )
        )
    return sorted(lags, key=lambda lag: lag.queue)


def read_spans(body: bytes) -> list[QueueSpan]:
    """Read the answer to GET_TOPIC_STATS_INFO.

    Raises:
        msgspec.DecodeError: It is not one.
    """
    spans = []
    for key, value in _PAIR.findall(body):
        found = msgspec.json.decode(value, type=_TopicOffset)
        spans.append(
            QueueSpan(
                _queue(key),
                found.min_offset,
                found.max_offset,
                found.last_update_timestamp,
            )
        )
    return sorted(spans, key=lambda span: span.queue)


def read_offsets(body: bytes) -> dict[MessageQueue, int]:
    """Read a body that gives an offset for each queue.

    Raises:
        msgspec.DecodeError: It is not one.
    """
    return {_queue(key): int(value) for key, value in _NUMBER.findall(body)}


def pairs(body: bytes) -> list[tuple[MessageQueue, bytes]]:
    """Each queue that is a key anywhere in a body, and the object that it has.

    Raises:
        msgspec.DecodeError: A key is no queue.
    """
    return [(_queue(key), value) for key, value in _PAIR.findall(body)]


def read_queues(body: bytes) -> list[MessageQueue]:
    """The queues that are keys anywhere in a body, sorted, as in ConsumerRunningInfo.

    Raises:
        msgspec.DecodeError: A key is no queue.
    """
    return sorted({queue for queue, _ in pairs(body)})


def _queue(key: bytes) -> MessageQueue:
    queue = msgspec.json.decode(key, type=bodies.MessageQueue)
    return MessageQueue(queue.topic, queue.broker_name, queue.queue_id)
