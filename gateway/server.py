"""The endpoints: the only file that opens listening sockets.

Each listener answers for the name server and for the broker, and tells its clients
the address that it advertises.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import TYPE_CHECKING

import structlog

from gateway.connection import Connection
from gateway.listener import Listener, Outbox, ServerError
from gateway.tls import wants_tls
from gateway.turns import Turns

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine

    from gateway.config import LimitsConfig, ListenerConfig
    from gateway.node.node import Node

log = structlog.get_logger(__name__)

_BACKLOG = 1024
_SWEEP_S = 1.0
_POLL_S = 0.01
_EXPIRE_EVERY_S = 10.0
"""ClientHousekeepingService's interval, RocketMQ 5.3.4."""
_ACCEPT_PAUSE_S = 1.0
_SHORT_OF = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""Accepting again at once would fail again; other errors are one client's own."""


class Server:
    """Every endpoint of a node.

    Args:
        node: What the requests work on.
        tls: Certificates, where TLS is offered.
        tls_required: Refuse plain text.
    """

    def __init__(
        self, node: Node, tls: ssl.SSLContext | None, *, tls_required: bool
    ) -> None:
        self._node = node
        self._limits = node.config.limits
        self._tls = tls
        self._tls_required = tls_required
        self._tasks: set[asyncio.Task[None]] = set()
        self._arriving: set[socket.socket] = set()
        """Accepted, but not yet a listener's connection."""
        self._outbox = Outbox(asyncio.get_running_loop())
        self._turns = Turns(self._limits, node.log, node.leadership)
        self.listeners: list[Listener] = []

    async def open(self) -> None:
        """Listen on every configured address; on all, or on none.

        Raises:
            ServerError: One cannot be opened.
        """
        try:
            for config in self._node.config.listeners:
                self.listeners.append(_listen(config, self._limits))
        except ServerError:
            for listener in self.listeners:
                listener.socket.close()
            raise
        for listener in self.listeners:
            self._spawn(self._accept(listener))
        self._spawn(self._sweep())

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: Listener) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(listener.socket)
            except OSError as error:
                log.warning("cannot accept", port=listener.port, reason=str(error))
                if error.errno in _SHORT_OF:
                    await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            connected = sum(len(one.connections) for one in self.listeners)
            if connected + len(self._arriving) >= self._limits.connections:
                log.warning(
                    "connection refused",
                    reason="too many connections",
                    allowed=self._limits.connections,
                )
                client.close()
                continue
            self._arriving.add(client)
            # The address is the one that accept gave: a client that has gone since
            # has none any more.
            connection = Connection(
                self._node, listener, self._outbox, self._turns, *address[:2]
            )
            self._spawn(self._connect(connection, client))

    async def _connect(self, connection: Connection, client: socket.socket) -> None:
        timeout_s = self._limits.handshake_ms / 1000
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            use_tls = self._tls is not None and await wants_tls(client, timeout_s)
            if self._tls_required and not use_tls:
                raise ConnectionRefusedError("plain text where TLS is required")
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._tls if use_tls else None,
                ssl_handshake_timeout=timeout_s if use_tls else None,
            )
        except (OSError, TimeoutError) as error:
            log.info(
                "connection refused",
                client=connection.address,
                reason=str(error) or "no byte in time",
            )
            client.close()
        self._arriving.discard(client)

    async def _sweep(self) -> None:
        """Close slow and idle connections, and give up silent clients."""
        loop = asyncio.get_running_loop()
        idle_s = self._limits.idle_ms / 1000
        slow_s = self._limits.slow_reader_ms / 1000
        next_idle = loop.time() + idle_s
        next_expiry = loop.time() + _EXPIRE_EVERY_S
        while True:
            await asyncio.sleep(min(_SWEEP_S, idle_s, slow_s))
            for listener in self.listeners:
                listener.close_slow(slow_s)
            if loop.time() >= next_idle:
                next_idle = loop.time() + idle_s
                for listener in self.listeners:
                    listener.close_idle()
            if loop.time() >= next_expiry:
                next_expiry = loop.time() + _EXPIRE_EVERY_S
                self._node.locks.expire()
                for link in self._node.clients.expire():
                    link.close()

    async def close(self, timeout_s: float) -> None:
        """Stop accepting and reading, answer what is in flight, then close."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._arriving:
            client.close()
        for listener in self.listeners:
            listener.socket.close()
        connections = [
            one for listener in self.listeners for one in listener.connections
        ]
        for connection in connections:
            connection.drain()
        self._node.holds.close()
        deadline = asyncio.get_running_loop().time() + timeout_s
        await _until(lambda: not any(one.in_flight for one in connections), deadline)
        for connection in connections:
            connection.close()
        await _until(lambda: all(one.closed for one in connections), deadline)
        for connection in connections:
            connection.abort()
        for task in list(self._node.tasks):
            task.cancel()
        await asyncio.gather(*self._node.tasks, return_exceptions=True)


async def _until(done: Callable[[], bool], deadline: float) -> None:
    loop = asyncio.get_running_loop()
    while not done() and loop.time() < deadline:  # noqa: ASYNC110 - once, at shutdown
        await asyncio.sleep(_POLL_S)


def _listen(config: ListenerConfig, limits: LimitsConfig) -> Listener:
    sock = _bind(config)
    most_slow = max(1, limits.slow_readers_bytes // limits.write_buffer_bytes)
    try:
        return Listener(config, sock, most_slow)
    except ServerError:
        sock.close()
        raise


def _bind(config: ListenerConfig) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind((config.host, config.port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise ServerError(
            f"cannot listen on {config.host}:{config.port}: {error.strerror}"
        ) from error
    return sock
