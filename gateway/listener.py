"""A listener's connections, the address it advertises, and who is slow or idle."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING, Protocol

import structlog

from ropeway.common.reasons import reason_of
from ropeway.gateway.errors import ServerError
from ropeway.gateway.unauthenticated import ClientConnection
from ropeway.gateway.wire import host_port, message, message_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.config import ListenerConfig
    from ropeway.gateway.quotas import Share
    from ropeway.gateway.unauthenticated import Unauthenticated

log = structlog.get_logger(__name__)


class OpenConnection(ClientConnection, Protocol):
    """A connection, as its listener and the server know it; see `connection`."""

    active: bool
    """Whether a byte came since the last look."""
    share: Share | None
    """Where a quota counts what it takes."""
    closed: bool

    @property
    def in_flight(self) -> int:
        """Requests being worked on."""

    @property
    def unsent_bytes(self) -> int:
        """What the transport has yet to write."""

    def drain(self) -> None:
        """Begin no more requests."""

    def close(self) -> None:
        """Send what has gathered, then close."""


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
        self.connections: set[OpenConnection] = set()
        self._most_slow = most_slow
        self._slow: dict[OpenConnection, float] = {}
        """Since when, the one that has been slow for longest first."""
        self.wake: Callable[[], None] = lambda: None
        """Called when one is slow."""

    @property
    def has_slow(self) -> bool:
        """Whether any client does not take its answers."""
        return bool(self._slow)

    def joined(self, connection: OpenConnection) -> None:
        """A client has connected."""
        self.connections.add(connection)

    def left(self, connection: OpenConnection) -> None:
        """A client's connection has ended."""
        self.connections.discard(connection)
        self._slow.pop(connection, None)

    def slow(self, connection: OpenConnection) -> None:
        """A client does not take its answers."""
        self._slow[connection] = asyncio.get_running_loop().time()
        self.wake()
        if len(self._slow) > self._most_slow:
            self._cut_off(next(iter(self._slow)), "slow reader, of too many")

    def caught_up(self, connection: OpenConnection) -> None:
        """A client has taken its answers after all."""
        self._slow.pop(connection, None)

    def close_slow(self, limit_s: float) -> None:
        """Close connections whose client has been behind for too long."""
        now = asyncio.get_running_loop().time()
        for connection, since in list(self._slow.items()):
            if now - since > limit_s:
                self._cut_off(connection, "slow reader")

    def _cut_off(self, connection: OpenConnection, reason: str) -> None:
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
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ServerError(
            f"advertised host {host!r} has no address: {reason_of(error)}"
        ) from (error)
    # Ids have the length that clients know best, where there is a choice.
    addresses = {family: str(place[0]) for family, _, _, _, place in reversed(found)}
    return addresses.get(socket.AF_INET) or addresses[socket.AF_INET6]
