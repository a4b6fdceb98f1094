"""Whose appends wait in the log: nobody's are more than a share of what may wait.

The log stores blocks one after the other, so who appends behind much waits for all of
it. The log does not know who appends: what it has more after a turn than before is the
flow's whose turn it was, until the log has stored as much. Meanwhile a flow that has
too much begins nothing long.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.storage.api import Log

SHARE = 4
"""One flow has a quarter of what may wait, which is four blocks of the embedded log:
what is written, and what collects meanwhile."""
SMALL_BYTES = 4096
"""Who has no more than this to begin is not held back: heartbeats and pulls go on."""
_LOOK_S = 0.002
"""How often is looked what the log has stored: as long as a turn."""


class Flow(Protocol):
    """Whose turns are counted."""

    storing_bytes: int
    """What its turns have appended and the log has not stored."""


class Waiting(Protocol):
    """A connection that waits for its turn."""

    @property
    def flow(self) -> Flow:
        """Whose turns it shares."""


W = TypeVar("W", bound=Waiting)


class LogBacklog(Generic[W]):
    """Counts what the log has not stored, by flow, and holds back who has too much.

    Args:
        log: Where sends go.
        limit_bytes: How much may wait there.
        join: Gives a connection that was held back a turn.
    """

    __slots__ = (
        "_appended",
        "_held",
        "_join",
        "_parts",
        "_seen_bytes",
        "_waiting_bytes",
        "share_bytes",
    )

    def __init__(self, log: Log, limit_bytes: int, join: Callable[[W], None]) -> None:
        self._waiting_bytes = log.waiting_bytes
        self.share_bytes = limit_bytes // SHARE
        """What a flow may have there, beside what was begun while less waited."""
        self._join = join
        self._appended = 0
        """Bytes of all turns so far."""
        self._seen_bytes = 0
        """What waited in the log when the last turn was over."""
        self._parts: deque[tuple[int, Flow, int]] = deque()
        """What turns have appended, and how much had been then; oldest first."""
        self._held: dict[Flow, dict[W, None]] = {}

    def look(self) -> None:
        """Look what is stored, before turns begin."""
        self._seen_bytes = waiting = self._waiting_bytes()
        parts, stored = self._parts, self._appended - waiting
        while parts and parts[0][0] <= stored:
            _, flow, size = parts.popleft()
            flow.storing_bytes -= size

    def turn_over(self, flow: Flow) -> None:
        """Note that a turn of this flow has ended, and no other one has begun."""
        waiting = self._waiting_bytes()
        size, self._seen_bytes = waiting - self._seen_bytes, waiting
        if size > 0:
            self._appended += size
            flow.storing_bytes += size
            self._parts.append((self._appended, flow, size))

    def holds_back(self, connection: W, size_bytes: int) -> bool:
        """Hold a connection back if its flow has too much in the log.

        Args:
            connection: Whose turn it is.
            size_bytes: What it would begin, at the most.

        Returns:
            Whether it gets another turn when the log has stored enough.
        """
        flow = connection.flow
        if size_bytes <= SMALL_BYTES or flow.storing_bytes <= self.share_bytes:
            return False
        if not self._held:
            self._look_later()
        self._held.setdefault(flow, {})[connection] = None
        return True

    def forget(self, connection: W) -> bool:
        """Hold a connection back no longer, which has ended; tells whether it was."""
        held = self._held.get(connection.flow, {})
        return connection in held and held.pop(connection) is None

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(_LOOK_S, self._let_go_on)

    def _let_go_on(self) -> None:
        self.look()
        for flow in [*self._held]:
            if flow.storing_bytes <= self.share_bytes:
                for connection in self._held.pop(flow):
                    self._join(connection)
        if self._held:
            self._look_later()
