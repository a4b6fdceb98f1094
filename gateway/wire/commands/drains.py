"""Requests of our own that take a broker out of its cluster: `ropeway broker`."""

from __future__ import annotations

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.ROPEWAY_DRAIN_BROKER)
class DrainBroker(Header, frozen=True):
    """Have a broker get no more queues, so that it can be emptied for good.

    Answered by the leader of that broker. ILLEGAL_OPERATION says what cannot leave it;
    then nothing has changed.
    """

    undo: bool = False
    """Let it have queues again."""


@request(RequestCode.ROPEWAY_GET_DRAIN)
class GetDrain(Header, frozen=True):
    """Ask a broker what it would still have to give away; answered by `DrainState`."""


class NextMove(Body, frozen=True):
    """A queue that can leave the broker now."""

    topic: str
    partition: int
    to_broker: str


class DrainState(Body, frozen=True, kw_only=True):
    """What a broker has yet that keeps it in its cluster."""

    draining: bool
    """Whether it gets no more queues."""
    queues: dict[str, int]
    """How many queues of each topic are to move."""
    moves: list[NextMove]
    """Some that can move next, one of a topic."""
    stuck: dict[str, str]
    """Topics whose queues cannot move, and why."""
    waiting: dict[str, int]
    """What waits in the broker's own topics: how many of each kind, where there are."""


@request(RequestCode.ROPEWAY_REMOVE_BROKER)
class RemoveBroker(Header, frozen=True):
    """Forget a broker that does not run; answered by `BrokerRemoved`, by any node.

    ILLEGAL_OPERATION says why that cannot be.
    """

    broker: str
    gone: bool = False
    """It never comes back, drained or not: what waits there is given up."""


class BrokerRemoved(Body, frozen=True, kw_only=True):
    """What was done."""

    deletions: int
    """Topics that were deleted while it was away, and are done with now."""
    own_topics: int
    """Topics of its own that are in no route any more."""
    left: dict[str, int]
    """Topics that it has queues of all the same, and how many."""
