"""Our own request to trim a topic, and its answer."""

from __future__ import annotations

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.ROPEWAY_TRIM_TOPIC)
class TrimTopic(Header, frozen=True):
    """Have a broker give up the oldest messages of a topic; see `TopicTrimmed`.

    INVALID_PARAMETER says why its log cannot.
    """

    topic: str
    timestamp: int
    """What was stored before goes, in milliseconds since 1970; -1: all there is."""
    queue_id: I32 = -1
    """Of this queue alone; -1: of all."""
    offset: int | None = None
    """What is below it goes, whatever the time is; of one queue."""
    dry_run: bool = False
    """Only say what would be."""


class QueueTrimmed(Body, frozen=True):
    """Where a queue began and begins."""

    queue_id: int
    before: int
    after: int


class TopicTrimmed(Body, frozen=True):
    """What was given up of a topic, on one broker."""

    broker_name: str
    queues: list[QueueTrimmed]
