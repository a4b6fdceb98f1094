"""A listener's connections, the address it advertises, and who is slow or idle."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.errors import ServerError
from ropeway.gateway.wire import host_port, message, message_id

if TYPE_CHECKING:
    from ropeway.gateway.config import ListenerConfig
    from ropeway.gateway.connection import Connection
    from ropeway.gateway.unauthenticated import Unauthenticated
    from ropeway.gateway.write_buffer import WriteBuffer

log = structlog.get_logger(__name__)


class Outbox:
    """The connections that have something to write at the end of this tick."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._expecting = False
        self._connections: list[WriteBuffer] = []

    def expect(self) -> None:
        """Write when all has been called that is due by now, and has answered."""
        if not self._expecting:
            self._expecting = True
            self._loop.call_soon(self._flush)

    def add(self, connection: WriteBuffer) -> None:
        """Write this connection's answers when the tick ends."""
        self._connections.append(connection)
        self.expect()

    def _flush(self) -> None:
        self._expecting = False
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.flush()


class Listener:
    """One listening socket with its connections and the address it advertises.

    Args:
        config: Where it listens, and what clients are told.
        sock: The socket.
        most_slow: Connections that may be slow at a time.
        unauthenticated: Which connections are known, of all listeners.

    Raises:
        ServerError: The advertised host has no address, or is none to connect to.
    """

    def __init__(
        self,
        config: ListenerConfig,
        sock: socket.socket,
        most_slow: int,
        unauthenticated: Unauthenticated,
    ) -> None:
        self.socket = sock
        self.unauthenticated = unauthenticated
        self.host, self.port = sock.getsockname()[:2]
        host = config.advertised_host or self.host
        if ipaddress.ip_address(_resolve(host)).is_unspecified:
            raise ServerError(
                f"clients cannot be told to connect to {host}; a listener on every "
                "address needs advertised_host"
            )
        port = config.advertised_port or self.port
        self.advertised = host_port.join(host, port)
        address = _resolve(host)
        self.packed_advertised = message.pack_host(address, port)
        self.id_prefix = message_id.address_prefix(address, port).encode()
        self.connections: set[Connection] = set()
        self._most_slow = most_slow
        self._slow: dict[Connection, float] = {}
        """Since when, the one that has been slow for longest first."""

    def joined(self, connection: Connection) -> None:
        """A client has connected."""
        self.connections.add(connection)

    def left(self, connection: Connection) -> None:
        """A client's connection has ended."""
        self.connections.discard(connection)
        self.unauthenticated.left(connection)
        self._slow.pop(connection, None)

    def slow(self, connection: Connection) -> None:
        """A client does not take its answers."""
        self._slow[connection] = asyncio.get_running_loop().time()
        if len(self._slow) > self._most_slow:
            self._cut_off(next(iter(self._slow)), "slow reader, of too many")

    def caught_up(self, connection: Connection) -> None:
        """A client has taken its answers after all."""
        self._slow.pop(connection, None)

    def close_slow(self, limit_s: float) -> None:
        """Close connections whose client has been behind for too long."""
        now = asyncio.get_running_loop().time()
        for connection, since in list(self._slow.items()):
            if now - since > limit_s:
                self._cut_off(connection, "slow reader")

    def _cut_off(self, connection: Connection, reason: str) -> None:
        log.warning("connection closed", client=connection.address, reason=reason)
        del self._slow[connection]
        connection.abort()

    def close_idle(self) -> None:
        """Close connections that have been silent since the last call."""
        for connection in list(self.connections):
            share = connection.share
            if connection.active or (share is not None and share.held_back):
                connection.active = False
            else:
                log.info("connection closed", client=connection.address, reason="idle")
                connection.close()


def _resolve(host: str) -> str:
    """The IP address that message ids carry for an advertised host."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.gethostbyname(host)
    except OSError as error:
        raise ServerError(f"advertised host {host!r} has no address: {error}") from (
            error
        )
