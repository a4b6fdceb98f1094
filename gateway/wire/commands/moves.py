"""Requests of our own that give a queue from one broker to another."""

from __future__ import annotations

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.ROPEWAY_MOVE_QUEUE)
class MoveQueue(Header, frozen=True):
    """Have a broker give its last queue of a topic to another; see `QueueMoved`.

    ILLEGAL_OPERATION says why that cannot be.
    """

    topic: str
    to_broker: str
    partition: I32 | None = None
    """Refuse, if the last queue is not this one."""


class QueueMoved(Body, frozen=True, kw_only=True):
    """A queue that another broker has now."""

    topic: str
    partition: int
    giver: str
    from_id: int
    """Which queue it was there."""
    taker: str
    to_id: int
    """And is here."""
    took_ms: int


@request(RequestCode.ROPEWAY_TAKE_QUEUE)
class TakeQueue(Header, frozen=True):
    """Have a broker keep what the body says of a queue that it is about to get.

    Between nodes. The body is `HandedOver`.
    """


class HandedOver(Body, frozen=True, kw_only=True):
    """What is known of a queue, besides what is in it."""

    topic: str
    partition: int
    giver: str
    to_id: int
    generation: int
    """Of the topic, as its queues on the giver have it."""
    offsets: dict[str, int]
    """The next offset of each group."""
    locks: dict[str, tuple[str, int]]
    """Of groups that consume in order: who, and for how many milliseconds yet."""


@request(RequestCode.ROPEWAY_STORE_DUE)
class StoreDue(Header, frozen=True):
    """Have a broker store messages of a topic that has no queue where they waited.

    Between nodes. The body is `DueMessages`.
    """


class DueMessages(Body, frozen=True, kw_only=True):
    """Messages whose time has come."""

    topic: str
    queue_id: int
    """The queue that they were sent to."""
    messages: list[tuple[bytes, bytes | None]]
    """Each as it was stored, and the properties that it is to have; None for those that
    it has."""
    from_timer: bool
