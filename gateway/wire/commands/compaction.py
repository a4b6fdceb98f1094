"""Requests of our own for compacted topics, and their answers."""

from __future__ import annotations

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.ROPEWAY_GET_LATEST)
class GetLatest(Header, frozen=True):
    """Ask a broker for the newest message of a key; the body is the stored message.

    QUERY_NOT_FOUND says that there is none. One without a body says that the key was
    deleted.
    """

    topic: str
    """A compacted one."""
    key: str
    """All of the message's KEYS."""


@request(RequestCode.ROPEWAY_COMPACT_TOPIC)
class CompactTopic(Header, frozen=True):
    """Ask a broker how far compaction of a topic's queues is."""

    topic: str
    force: bool = False
    """Compact all that is there by now, first; the answer comes when it is done."""


class QueueCompaction(Body, frozen=True):
    """How far compaction of one queue is."""

    queue_id: int
    clean_end: int
    """Below this offset each key has one message at most."""
    end: int
    messages: int
    """Those below `clean_end`."""
    bytes: int
    problem: str | None = None
    """Why the last attempt failed; None where it did not."""


class TopicCompaction(Body, frozen=True):
    """How far compaction of a topic's queues is, on one broker."""

    broker_name: str
    queues: list[QueueCompaction]
