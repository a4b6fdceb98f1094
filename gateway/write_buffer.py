"""What connections send: answers gather in a tick, and leave together.

Each connection has a `WriteBuffer`. The `Outbox` of a server knows those that have
something to write, and flushes them when the tick ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from ropeway.gateway.quotas import Share
    from ropeway.gateway.wire.frame import Buffer

_JOIN_BELOW = 16 * 1024
"""Answers of a tick up to this size are copied together, for one small write."""

_FLUSH_ABOVE = 1024 * 1024
"""Answers that have gathered to this size are written before the tick ends, so that
a client that does not take them is known before more is read for it."""


class Outbox:
    """The connections that have something to write at the end of this tick."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._expecting = False
        self._connections: list[WriteBuffer] = []

    def expect(self, connection: WriteBuffer | None = None) -> None:
        """Write when all has been called that is due by now, and has answered.

        Args:
            connection: One whose answers are to be written then.
        """
        if connection is not None:
            self._connections.append(connection)
        if not self._expecting:
            self._expecting = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._expecting = False
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.flush()


class WriteBuffer:
    """The outgoing half of a connection.

    Args:
        outbox: Flushes it at the end of a tick.
    """

    __slots__ = ("_out", "_out_bytes", "_outbox", "_transport", "closed", "share")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._out: list[Buffer] = []
        self._out_bytes = 0
        self._transport: asyncio.Transport | None = None
        self.closed = False
        self.share: Share | None = None
        """Where a quota counts what it takes."""

    def push(self, *data: Buffer) -> None:
        """Send a whole frame at the end of this tick."""
        if self.closed:
            return
        if not self._out:
            self._outbox.expect(self)
        self._out += data
        for piece in data:
            self._out_bytes += len(piece)
        if self._out_bytes > _FLUSH_ABOVE:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered in this tick."""
        out, self._out = self._out, []
        size, self._out_bytes = self._out_bytes, 0
        if self.closed or self._transport is None or not out:
            return
        if self.share is not None:
            self.share.charge(0, size)
        if len(out) == 1:
            self._transport.write(out[0])
        elif size <= _JOIN_BELOW:
            self._transport.write(b"".join(out))
        else:
            self._transport.writelines(out)

    def close(self) -> None:
        """Send what has gathered, then close. Twice is fine."""
        transport = self._transport
        # What asyncio has of a TLS connection that is closed twice cannot be aborted.
        if transport is not None and not self.closed and not transport.is_closing():
            self.flush()
            transport.close()
