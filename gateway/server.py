"""The endpoints: the only file that opens listening sockets.

Each listener answers for the name server and for the broker, and tells its clients
the address that it advertises.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog

from ropeway.common.eager import Waiting, begin, settled
from ropeway.common.reasons import reason_of
from ropeway.common.tasks import Tasks
from ropeway.gateway.connection import Connection
from ropeway.gateway.errors import ServerError
from ropeway.gateway.listener import Listener, OpenConnection
from ropeway.gateway.node.backoff import Rest
from ropeway.gateway.open_files import room
from ropeway.gateway.pipes import ALPN, PREFACE
from ropeway.gateway.quotas import Quotas, Share
from ropeway.gateway.tls import HANDSHAKE, first_byte
from ropeway.gateway.unauthenticated import Unauthenticated
from ropeway.gateway.write_buffer import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from ropeway.gateway.config import LimitsConfig, ListenerConfig
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.pipes import Accepting
    from ropeway.gateway.tls import Certificates

log = structlog.get_logger(__name__)

_BACKLOG = 1024
_SWEEP_S = 1.0
_POLL_S = 0.01
_LINGER_S = 1.0
"""Time for TLS clients to close their side, too, when all is sent: Java's do not."""
_EXPIRE_EVERY_S = 10.0
"""ClientHousekeepingService's interval, RocketMQ 5.3.4."""
_ACCEPTS = 256
"""Connections that are accepted at a time: some milliseconds. With 32, more came than
were accepted where an iteration of the loop takes half a second, as on a processor that
others have, and the next one waited behind all that were there."""
_ACCEPT_PAUSE_S = 1.0
_SHORT_OF = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""Accepting again at once would fail again; other errors are one client's own."""


class Server:
    """Every endpoint of a node.

    Args:
        node: What the requests work on.
        certificates: Where TLS is offered.
        tls_required: Refuse plain text.
    """

    def __init__(
        self, node: Node, certificates: Certificates | None, *, tls_required: bool
    ) -> None:
        self._node = node
        self._limits = node.config.limits
        self._certificates = certificates
        self._tls_required = tls_required
        self._tasks = Tasks()
        self._accepted: set[socket.socket] = set()
        """Accepted, but not yet a listener's connection."""
        self._outbox = Outbox(asyncio.get_running_loop())
        quotas = node.config.quotas
        self._quotas = (
            Quotas(quotas, by_principal=node.guard is not None) if quotas else None
        )
        self.fair_queue = node.fair_queue
        self.unauthenticated = Unauthenticated(
            node.config, is_guarded=node.guard is not None
        )
        """Who is known, and what unfinished requests hold."""
        self._allowed = room(node.config).clients
        """Connections at a time."""
        self.listeners: list[Listener] = []
        self._rest = Rest(self._next_sweep_s)
        self.unauthenticated.wake = self._rest.wake
        self._idle_at_s = self._expire_at_s = 0.0
        self.http2: Accepting | None = None
        """Where connections go on that speak HTTP/2; None: they are closed."""

    @property
    def waiting(self) -> tuple[int, int]:
        """Requests that wait to be begun, and their bytes."""
        return self.fair_queue.waiting, self.fair_queue.waiting_bytes

    async def open(self) -> None:
        """Listen on every configured address; on all, or on none.

        Raises:
            ServerError: One cannot be opened.
        """
        try:
            for config in self._node.config.listeners:
                self.listeners.append(
                    _listen(config, self._limits, self.unauthenticated)
                )
        except ServerError:
            for listener in self.listeners:
                listener.socket.close()
            raise
        for listener in self.listeners:
            listener.wake = self._rest.wake
            self._accept_on(listener)
        self._tasks.start(self._sweep())

    def _accept_on(self, listener: Listener) -> None:
        if listener.socket.fileno() >= 0:
            loop = asyncio.get_running_loop()
            loop.add_reader(listener.socket, self._accept, listener)

    def _accept(self, listener: Listener) -> None:
        """Take who has connected: a busy loop comes back in a while."""
        try:
            for _ in range(_ACCEPTS):
                self._take(listener, *listener.socket.accept())
        except BlockingIOError:
            pass
        except OSError as error:
            log.warning("cannot accept", port=listener.port, reason=reason_of(error))
            if error.errno in _SHORT_OF:
                loop = asyncio.get_running_loop()
                loop.remove_reader(listener.socket)
                loop.call_later(_ACCEPT_PAUSE_S, self._accept_on, listener)

    def _take(
        self, listener: Listener, client: socket.socket, address: tuple[Any, ...]
    ) -> None:
        """Take a connection that was accepted, if there is room for it."""
        client.setblocking(False)
        connected = sum(len(one.connections) for one in self.listeners)
        connected += len(self._accepted) + len(self.http2.open if self.http2 else ())
        if connected >= self._allowed:
            log.warning(
                "connection refused",
                reason="too many connections",
                allowed=self._allowed,
            )
            client.close()
            return
        # The address is the one that accept gave: a client that has gone since
        # has none any more.
        connection = Connection(
            self._node, listener, self._outbox, self.fair_queue, *address[:2]
        )
        if not self._count(connection):
            log.warning(
                "connection refused",
                client=connection.address,
                reason="its quota of connections is used up",
            )
            client.close()
            return
        self._accepted.add(client)
        # Each step that is left to the next iteration waits for all that is done in it.
        connecting = begin(self._connect(connection, client))
        if isinstance(connecting, Waiting):
            waiting: Coroutine[Any, Any, None] = settled(connecting)
            self._tasks.start(waiting)

    def _count(self, connection: Connection) -> bool:
        """Give a connection its share; False where its client has too many."""
        if self._quotas is None:
            return True
        connection.share = Share(self._quotas, connection.source.address, connection)
        return connection.share.begin()

    async def _connect(self, connection: Connection, client: socket.socket) -> None:
        timeout_s = self._limits.handshake_ms / 1000
        first, tls = b"", None
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._certificates is not None or self.http2 is not None:
                first = await first_byte(client, timeout_s)
            if self._certificates is not None and first == HANDSHAKE:
                tls = self._certificates.server
            if self._tls_required and tls is None:
                raise ConnectionRefusedError("plain text where TLS is required")
            protocol: asyncio.Protocol = connection
            if self.http2 is not None and (tls or first == PREFACE):
                protocol = (
                    _Choice(connection, self.http2)
                    if tls
                    else self.http2.accept(connection)
                )
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol,
                client,
                ssl=tls,
                ssl_handshake_timeout=timeout_s if tls else None,
            )
        except (OSError, TimeoutError) as error:
            # Load balancers probe a port so every few seconds.
            is_probe = not first and isinstance(error, ConnectionResetError)
            tell = log.debug if is_probe else log.info
            tell(
                "connection refused",
                client=connection.address,
                reason=reason_of(error),
            )
            if connection.share is not None:
                connection.share.leave()
            client.close()
        self._accepted.discard(client)

    def _next_sweep_s(self) -> float:
        """In how many seconds to sweep: 0 while anything may be due at any time."""
        slow = any(listener.has_slow for listener in self.listeners)
        if slow or self.unauthenticated or self._certificates is not None:
            return 0.0
        now_s = asyncio.get_running_loop().time()
        return min(self._idle_at_s, self._expire_at_s) - now_s

    async def _sweep(self) -> None:
        """Close slow and idle connections, and look after what else takes its time."""
        loop = asyncio.get_running_loop()
        idle_s = self._limits.idle_ms / 1000
        slow_s = self._limits.slow_reader_ms / 1000
        late_s = self.unauthenticated.limits.timeout_ms / 1000
        self._idle_at_s = loop.time() + idle_s
        self._expire_at_s = loop.time() + _EXPIRE_EVERY_S
        while True:
            await self._rest.pause(min(_SWEEP_S, idle_s, slow_s, late_s))
            self.unauthenticated.close_late()
            for listener in self.listeners:
                listener.close_slow(slow_s)
            if self._certificates is not None:
                self._certificates.refresh(loop.time())
            if loop.time() >= self._idle_at_s:
                self._idle_at_s = loop.time() + idle_s
                for listener in self.listeners:
                    listener.close_idle()
            if loop.time() >= self._expire_at_s:
                self._expire_at_s = loop.time() + _EXPIRE_EVERY_S
                self._node.locks.expire()
                if self._quotas is not None:
                    self._quotas.forget()
                for link in self._node.clients.expire():
                    link.close()

    async def _stop_accepting(self) -> None:
        for listener in self.listeners:
            if listener.socket.fileno() >= 0:
                asyncio.get_running_loop().remove_reader(listener.socket)
            listener.socket.close()
        for client in self._accepted:
            # uvloop goes on with a handshake although its task is cancelled.
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._accepted:
            client.close()

    async def close(self, timeout_s: float) -> None:
        """Stop accepting and reading, answer what is in flight, then close."""
        await self._stop_accepting()
        connections = [
            one for listener in self.listeners for one in listener.connections
        ]
        for connection in connections:
            connection.drain()
        if self.http2 is not None:
            self.http2.close()
        self._node.pull_hold.close()
        self._node.pop.polling.close()
        self._node.forwarder.end_waits()
        quotas = self._node.quotas
        quotas.close()
        deadline = asyncio.get_running_loop().time() + timeout_s
        await _until(lambda: not quotas.waiting, deadline)
        await _until(lambda: _close_answered(connections), deadline)
        for connection in connections:
            connection.close()
        await _until(
            lambda: all(one.closed or not one.unsent_bytes for one in connections),
            deadline,
        )
        over = min(deadline, asyncio.get_running_loop().time() + _LINGER_S)
        await _until(lambda: all(one.closed for one in connections), over)
        for connection in connections:
            connection.abort()
        for task in list(self._node.tasks):
            task.cancel()
        await asyncio.gather(*self._node.tasks, return_exceptions=True)


class _Choice(asyncio.Protocol):
    """A TLS connection, until its handshake has said what is spoken on it."""

    def __init__(self, connection: Connection, http2: Accepting) -> None:
        self._connection = connection
        self._http2 = http2

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        spoken = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        connection = self._connection
        chosen = self._http2.accept(connection) if spoken == ALPN else connection
        transport.set_protocol(chosen)
        chosen.connection_made(transport)


def _close_answered(connections: Iterable[OpenConnection]) -> bool:
    """Close who has all answers, so that it sends elsewhere; whether all have them."""
    busy = False
    for connection in connections:
        if connection.in_flight:
            busy = True
        else:
            connection.close()
    return not busy


async def _until(done: Callable[[], bool], deadline: float) -> None:
    loop = asyncio.get_running_loop()
    while not done() and loop.time() < deadline:  # noqa: ASYNC110 - once, at shutdown
        await asyncio.sleep(_POLL_S)


def _listen(
    config: ListenerConfig, limits: LimitsConfig, unauthenticated: Unauthenticated
) -> Listener:
    sock = bind(config.host, config.port)
    most_slow = max(1, limits.slow_readers_bytes // limits.write_buffer_bytes)
    try:
        return Listener(config, sock, most_slow, unauthenticated)
    except ServerError:
        sock.close()
        raise


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens, for whoever accepts on it.

    Raises:
        ServerError: It cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise ServerError(
            f"cannot listen on {host}:{port}: {reason_of(error)}"
        ) from error
    return sock
