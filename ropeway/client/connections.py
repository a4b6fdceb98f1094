"""All connections of a client: one an address, opened when needed, backing off."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.client.connection import Connection, Response, connect
from ropeway.client.errors import (
    ClientClosedError,
    ConnectionFailedError,
    RequestTimeoutError,
    ResponseError,
)
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from ropeway.client.config import ClientConfig
    from ropeway.client.connection import Handler
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.gateway.wire.header import Header

_SUCCESS_ONLY = (ResponseCode.SUCCESS,)


class _Peer:
    """What is known of one address."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.connection: Connection | None = None
        self.back_off_s = 0.0
        self.failed_at = -1.0
        self.failure = ""


class Connections:
    """Requests to any address.

    Args:
        config: Time-outs, back-off, TLS and credentials.
        on_open: Called with the address of every new connection.
    """

    def __init__(self, config: ClientConfig, on_open: Callable[[str], None]) -> None:
        self._config = config
        self._on_open = on_open
        self._peers: dict[str, _Peer] = {}
        self._is_closed = False
        self.handlers: dict[int, Handler] = {}
        """What to do on servers' requests, by code."""

    async def request(
        self,
        address: str,
        header: Header,
        body: Buffer = b"",
        *,
        timeout_s: float | None = None,
        expect: Container[int] = _SUCCESS_ONLY,
    ) -> Response:
        """Send a request and wait for its answer.

        Args:
            address: Where to, as `host:port`.
            header: The request.
            body: Its body.
            timeout_s: The longest to wait, connecting included; by default
                `request_timeout_s`.
            expect: Response codes that are no error to the caller.

        Raises:
            ResponseError: The answer's code is not expected.
            ConnectionFailedError: No connection, it was lost, or time is up.
            ClientClosedError: The client is closed.
        """
        limit_s = self._config.request_timeout_s if timeout_s is None else timeout_s
        deadline = asyncio.get_running_loop().time() + limit_s
        connection = await self._connection(address, limit_s)
        left_s = max(0.0, deadline - asyncio.get_running_loop().time())
        response = await connection.request(header, body, timeout_s=left_s)
        if response.code not in expect:
            raise ResponseError(response.code, response.remark, address)
        return response

    async def send_one_way(
        self, address: str, header: Header, body: Buffer = b""
    ) -> None:
        """Send a request that has no answer.

        Raises:
            ConnectionFailedError: No connection.
            ClientClosedError: The client is closed.
        """
        connection = await self._connection(address, self._config.request_timeout_s)
        await connection.send_one_way(header, body)

    async def _connection(self, address: str, timeout_s: float) -> Connection:
        if self._is_closed:
            raise ClientClosedError("the client is closed")
        peer = self._peers.setdefault(address, _Peer())
        if peer.connection is not None and peer.connection.is_open:
            return peer.connection
        asked_at = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(timeout_s), peer.lock:
                if peer.failed_at > asked_at:
                    # Who waited while connecting failed shares the failure.
                    raise ConnectionFailedError(address, peer.failure)
                if peer.connection is None or not peer.connection.is_open:
                    peer.connection = await self._open(address, peer)
                return peer.connection
        except TimeoutError as error:
            reason = f"no connection within {timeout_s:.1f} s"
            raise RequestTimeoutError(address, reason) from error

    async def _open(self, address: str, peer: _Peer) -> Connection:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, peer.failed_at + peer.back_off_s - loop.time()))
        if self._is_closed:
            raise ClientClosedError("the client is closed")
        try:
            connection = await connect(address, self._config, self.handlers)
        except ConnectionFailedError as error:
            longer_s = max(self._config.reconnect_min_s, 2 * peer.back_off_s)
            peer.back_off_s = min(longer_s, self._config.reconnect_max_s)
            peer.failed_at, peer.failure = loop.time(), error.reason
            raise
        peer.back_off_s = 0.0
        self._on_open(address)
        return connection

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        self._is_closed = True
        for peer in self._peers.values():
            async with peer.lock:
                if peer.connection is not None:
                    await peer.connection.close()
        self._peers.clear()
