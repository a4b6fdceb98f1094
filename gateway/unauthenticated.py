"""What connections hold of unfinished requests, and for how long one may stay unknown.

With access control, a connection is unknown until somebody was known by one of its
requests, be it a user or an address that needs no name. Until then it may send less,
has little time, and shares little memory with all that are unknown, so that no number
of them keeps out who is known.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import structlog

from ropeway.gateway.budget import Budget
from ropeway.gateway.open_files import room
from ropeway.gateway.wire.frame import FrameReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.config import Config
    from ropeway.gateway.request_limits import RequestsConfig, UnauthenticatedConfig

log = structlog.get_logger(__name__)

_COUNTED_BYTES = 4096
"""Less of a request is not counted: nearly every read ends within a small one."""


class ClientConnection(Protocol):
    """A client's connection, of whichever protocol."""

    address: str
    known: bool
    """Whether it is not unknown; set here."""

    def abort(self) -> None:
        """Close it at once."""


class Unauthenticated:
    """Knows which connections of a server are unknown, and bounds what they hold.

    Args:
        config: The bounds.
        is_guarded: Whether access control is on; else everybody is known.
    """

    def __init__(self, config: Config, *, is_guarded: bool) -> None:
        self.limits: UnauthenticatedConfig = config.unauthenticated
        self.requests: RequestsConfig = config.requests
        self.frame_bytes = config.limits.frame_bytes
        self.message_bytes = config.limits.message_bytes
        self._is_guarded = is_guarded
        self._allowed = room(config).strangers
        self._since: dict[ClientConnection, float] = {}
        """The one that has been unknown for longest comes first."""
        self.partial = Budget(self.requests.partial_bytes)
        """Unfinished requests of known connections."""
        self.wake: Callable[[], None] = lambda: None
        """Called when one is unknown."""
        self.unknown_partial = Budget(self.limits.partial_bytes)

    def __len__(self) -> int:
        return len(self._since)

    def joined(self, connection: ClientConnection) -> None:
        """A client has connected; of too many unknown ones the oldest has to go."""
        connection.known = not self._is_guarded
        if connection.known:
            return
        self._since[connection] = time.monotonic()
        self.wake()
        if len(self._since) > self._allowed:
            self._cut_off(next(iter(self._since)), "not authenticated, of too many")

    def became_known(self, connection: ClientConnection) -> None:
        """Somebody is: it may send as much as all who are known."""
        connection.known = True
        self._since.pop(connection, None)

    def left(self, connection: ClientConnection) -> None:
        """A connection has ended."""
        self._since.pop(connection, None)
        self.unknown_partial.leave(connection)
        self.partial.leave(connection)

    def close_late(self) -> None:
        """Close connections that have been unknown for too long."""
        limit = time.monotonic() - self.limits.timeout_ms / 1000
        while self._since:
            oldest, since = next(iter(self._since.items()))
            if since > limit:
                return
            self._cut_off(oldest, "not authenticated in time")

    def _cut_off(self, connection: ClientConnection, reason: str) -> None:
        log.info("connection closed", client=connection.address, reason=reason)
        self.left(connection)
        connection.abort()


class Partial:
    """Counts what one connection holds of unfinished requests.

    Args:
        unauthenticated: All connections.
        connection: This one.
    """

    __slots__ = ("_budget", "_held_bytes", "_unauthenticated", "connection")

    def __init__(
        self, unauthenticated: Unauthenticated, connection: ClientConnection
    ) -> None:
        self._unauthenticated = unauthenticated
        self.connection: ClientConnection | None = connection
        """None once it has ended, which knows this: nothing of both stays."""
        self._held_bytes = 0
        self._budget = (
            unauthenticated.partial
            if connection.known
            else unauthenticated.unknown_partial
        )

    def holds(self, size: int) -> None:
        """It holds so much now."""
        change, self._held_bytes = size - self._held_bytes, size
        if self.connection is None:
            return
        if change > 0:
            self._budget.hold(self.connection, change)
        elif change:
            self._budget.let_go(self.connection, -change)

    def changed(self, change: int) -> None:
        """It holds so much more, or less."""
        self.holds(self._held_bytes + change)

    def became_known(self) -> None:
        """Count it among those who are known."""
        if self.connection is None:
            return
        held, self._held_bytes = self._held_bytes, 0
        self._budget.leave(self.connection)
        self._unauthenticated.became_known(self.connection)
        self._budget = self._unauthenticated.partial
        self.holds(held)

    def left(self) -> None:
        """The connection has ended: count nothing of it any more."""
        if self.connection is not None:
            self._unauthenticated.left(self.connection)
            self.connection = None


class Reader(FrameReader):
    """Cuts the frames of one remoting connection, which may send what it is allowed to.

    Args:
        unauthenticated: All connections; the connection joins them.
        connection: Whose frames.
    """

    __slots__ = ("_counted", "_partial", "_unauthenticated", "refusals")

    def __init__(
        self, unauthenticated: Unauthenticated, connection: ClientConnection
    ) -> None:
        self._unauthenticated = unauthenticated
        unauthenticated.joined(connection)
        self._partial = Partial(unauthenticated, connection)
        self.refusals = 0
        """What came in vain, of late."""
        self._counted = False
        frame_bytes, header_bytes = (
            unauthenticated.frame_bytes,
            unauthenticated.requests.header_bytes,
        )
        if not connection.known:
            header_bytes = min(unauthenticated.limits.header_bytes, header_bytes)
            # A producer may begin with its longest message.
            frame_bytes = min(unauthenticated.message_bytes + header_bytes, frame_bytes)
        super().__init__(frame_bytes, header_bytes)

    def _holds(self, size: int) -> None:
        if size > _COUNTED_BYTES:
            self._counted = True
            self._partial.holds(size)
        elif self._counted:
            self._counted = False
            self._partial.holds(0)

    def became_known(self) -> None:
        """Take what a known client may send."""
        self._partial.became_known()
        self.max_frame_bytes = self._unauthenticated.frame_bytes
        self.max_header_bytes = self._unauthenticated.requests.header_bytes

    def refused(self) -> None:
        """What came was in vain: after so much, the rest is not worth reading."""
        self.refusals += 1
        allowed = self._unauthenticated.limits.refusals
        connection = self._partial.connection
        if self.refusals == allowed + 1 and connection is not None:
            log.warning(
                "connection closed",
                client=connection.address,
                reason="too many refusals, or answers that nobody asked for",
                allowed=allowed,
            )
            connection.abort()

    def left(self) -> None:
        """The connection has ended, and with it what it had begun to send."""
        self.clear()
        self._partial.left()
