"""Connections that speak HTTP/2: each is piped, byte by byte, to the gRPC server.

gRPC's server shares no port with another protocol, and serves TLS and plain text on
two. So a listener takes its connections like any other, TLS and all, and what comes
goes on to a Unix socket that only this process may connect to. Each connection to that
has a name, by which the server's calls tell whose they are.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import socket
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
import structlog

from ropeway.acl.api import Channel
from ropeway.common.reasons import reason_of
from ropeway.gateway.partial_requests import PartialRequests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ropeway.acl.api import Principal, Source
    from ropeway.gateway.budget import Budget
    from ropeway.gateway.listener import Listener
    from ropeway.gateway.node.flow import Flow
    from ropeway.gateway.quotas import Share

log = structlog.get_logger(__name__)

PREFACE = b"P"
"""How HTTP/2 begins without TLS: `PRI * HTTP/2.0` (RFC 9113, 3.4). A frame of ours that
began so would be of a gigabyte."""
ALPN = "h2"
_WRITE_BUFFER_BYTES = 256 * 1024


class Accepted(Protocol):
    """What is known of a client before it has said anything."""

    listener: Listener
    address: str
    packed_address: bytes
    source: Source
    share: Share | None

    @property
    def flow(self) -> Flow:
        """Whose turns it shares."""


class Accepting(Protocol):
    """Takes connections that speak HTTP/2."""

    @property
    def open(self) -> Mapping[Any, Any]:
        """Those that clients are connected to."""

    @property
    def budget(self) -> Budget:
        """Of all that is held for slow clients."""

    def accept(self, client: Accepted) -> asyncio.Protocol:
        """A protocol for a client's connection."""

    def close(self) -> None:
        """Close all of them."""


class Pipes:
    """All connections that are piped.

    Args:
        path: The gRPC server's socket.
        budget: Of all that the server holds for slow clients.
        limit_bytes: It refuses longer requests.
    """

    def __init__(self, path: Path, budget: Budget, limit_bytes: int) -> None:
        self.path = str(path)
        self.budget = budget
        self.limit_bytes = limit_bytes
        self._prefix = f"ropeway/{os.getpid()}/{secrets.token_hex(8)}/"
        self._numbers = itertools.count()
        self.open: dict[str, Pipe] = {}
        """Those that clients are connected to, by name."""

    def accept(self, client: Accepted) -> Pipe:
        """A protocol for a client's connection."""
        return Pipe(self, f"{self._prefix}{next(self._numbers)}", client)

    def close(self) -> None:
        """Close all of them."""
        for pipe in list(self.open.values()):
            pipe.close()


class Pipe(asyncio.Protocol):
    """The client's side of one connection."""

    def __init__(self, pipes: Pipes, name: str, client: Accepted) -> None:
        self._pipes = pipes
        self.name = name
        self.listener = client.listener
        self.address = client.address
        self.packed_address = client.packed_address
        self.source = msgspec.structs.replace(client.source, channel=Channel.GRPC)
        self.share = client.share
        self.flow = client.flow
        self.active = True
        """Whether it was silent does not matter: gRPC looks after that itself."""
        self._is_full = False
        """Whether the server does not take what came."""
        self.closed = False
        self._is_open = False
        """Whether the server's side is there."""
        self.transport: asyncio.Transport | None = None
        self.early: list[bytes] = []
        """What came before there was somewhere to write it."""
        self._partial = PartialRequests(pipes.limit_bytes)
        self.known = False
        self._inner = _Inner(self)
        self._opening: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        self.transport.pause_reading()
        if certificate := transport.get_extra_info("peercert"):
            self.source = msgspec.structs.replace(self.source, certificate=certificate)
        self._pipes.open[self.name] = self
        self.listener.unauthenticated.joined(self)
        if self.share is not None:
            self.share.belongs_to(self)
        self._opening = asyncio.get_running_loop().create_task(self._open())

    def become_known(self, _principal: Principal | None) -> None:
        """Somebody was known by a call: it may send more."""
        self.listener.unauthenticated.became_known(self)

    async def _open(self) -> None:
        assert self.transport is not None, "it is opened when it is connected"
        try:
            await self._inner.connect(self._pipes.path, self.name)
        except OSError as error:
            log.warning(
                "gRPC is not there", client=self.address, reason=reason_of(error)
            )
            self.transport.abort()
            return
        if self.closed:
            self._inner.close()
        else:
            self._is_open = True
            self.pause_or_resume()

    def data_received(self, data: bytes) -> None:
        """Bytes came: on with them."""
        if grown := self._partial.feed(data):
            if grown > 0:
                self._pipes.budget.hold(self, grown)
            else:
                self._pipes.budget.let_go(self, -grown)
        if self.share is not None:
            self.share.charge(0, len(data))
        if self._inner.transport is None:
            self.early.append(data)
        else:
            self._inner.transport.write(data)

    def pause_writing(self) -> None:
        """The client does not take what it is sent: let the server wait."""
        self._inner.pause()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._inner.resume()

    def connection_lost(self, _error: Exception | None) -> None:
        """The client has gone."""
        self.closed = True
        self._pipes.open.pop(self.name, None)
        self._pipes.budget.leave(self)
        self.listener.unauthenticated.left(self)
        if self.share is not None:
            self.share.leave()
        self._inner.close()

    def close(self) -> None:
        """Close it, after what is written."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close it at once, whatever the client has not taken."""
        self.closed = True
        if self.transport is not None:
            self.transport.abort()

    def write(self, data: bytes) -> None:
        """The server's answers: on with them."""
        if self.transport is not None and not self.closed:
            self.transport.write(data)
            if self.share is not None:
                self.share.charge(0, len(data))

    def pause(self) -> None:
        """Take nothing more from the client for now."""
        self._is_full = True
        self.pause_or_resume()

    def resume(self) -> None:
        """Take from the client again."""
        self._is_full = False
        self.pause_or_resume()

    def pause_or_resume(self) -> None:
        """Read from the client, or not, as things are now."""
        if self.transport is None or self.closed or not self._is_open:
            return
        if self._is_full or (self.share is not None and self.share.held_back):
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()


class _Inner(asyncio.Protocol):
    """The gRPC server's side."""

    def __init__(self, outer: Pipe) -> None:
        self._outer = outer
        self.transport: asyncio.Transport | None = None

    async def connect(self, path: str, name: str) -> None:
        loop = asyncio.get_running_loop()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.bind(f"\0{name}")
            await loop.sock_connect(sock, path)
            await loop.create_unix_connection(lambda: self, sock=sock)
        except BaseException:
            sock.close()
            raise

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(_WRITE_BUFFER_BYTES)
        # Now, before anything more comes: some loops read in spite of a pause.
        self.transport.writelines(self._outer.early)
        self._outer.early.clear()

    def data_received(self, data: bytes) -> None:
        self._outer.write(data)

    def pause_writing(self) -> None:
        self._outer.pause()

    def resume_writing(self) -> None:
        self._outer.resume()

    def pause(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        self._outer.close()
        # It has this, too.
        del self._outer
