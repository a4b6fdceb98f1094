"""The request of our own for what waits, and its answer's body."""

from __future__ import annotations

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32
from ropeway.gateway.wire.header import Header, request

MAX_PAGE = 1000
"""Messages of one answer."""


@request(RequestCode.ROPEWAY_LIST_TIMERS)
class ListTimers(Header, frozen=True):
    """Ask a broker which messages wait for their time; the body tells a page of them.

    A page may have fewer than were asked for, or none, and there may be more all the
    same: what is looked at for one answer is bounded.
    """

    max_nums: I32
    """1 to `MAX_PAGE`."""
    topic: str | None = None
    """Only messages for it."""
    after: str = ""
    """Where the page before said to go on; nothing for the first one."""


class WaitingMessage(Body, frozen=True):
    """A message that waits."""

    topic: str
    """Where it is for."""
    deliver_ms: int
    """When it is due, in milliseconds since 1970."""
    msg_id: str
    """Its unique key."""
    recall_handle: str


class TimerPage(Body, frozen=True):
    """Messages that wait, about the soonest first."""

    messages: list[WaitingMessage]
    next: str | None = None
    """Where to go on; None where there are no more."""
