"""The service on HTTP/2 connections of our own: those that listeners hand over."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from ropeway.acl.api import Channel
from ropeway.gateway.grpc import messaging_service
from ropeway.gateway.grpc.exchanges import Exchange
from ropeway.gateway.http2.connection import Connection
from ropeway.gateway.http2.receiver import Limits
from ropeway.gateway.node.fair_queueing import HEARING_S, TURN_REQUESTS
from ropeway.gateway.unauthenticated import Partial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from ropeway.acl.api import Principal
    from ropeway.gateway.grpc.messaging_service import Messaging
    from ropeway.gateway.pipes import Accepted
    from ropeway.gateway.quotas import Share
    from ropeway.gateway.server import Server

_POLL_S = 0.01
_CALL_S = 100e-6
"""What a call takes on the loop, about: a send takes 74 to 206 microseconds, and to end
a session 100."""


class Client(Connection):
    """One client's connection, the `Origin` of its calls.

    Args:
        clients: All of them.
        number: Its own among them.
        accepted: What is known of it.
        limits: What it may take.
    """

    has_large = False
    stream = Exchange

    def __init__(
        self, clients: Clients, number: int, accepted: Accepted, limits: Limits
    ) -> None:
        super().__init__(limits)
        self._clients = clients
        self.service, self.paths = clients.service, clients.paths
        self._number = number
        self.listener = accepted.listener
        self.address = accepted.address
        self.packed_address = accepted.packed_address
        self.source = msgspec.structs.replace(accepted.source, channel=Channel.GRPC)
        self.share: Share | None = accepted.share
        """Where a quota counts what it takes."""
        self.sender.share = self.share
        self.known = False
        self.flow = accepted.flow
        self._kept: list[bytes] = []
        """What came, and waits for a turn."""
        self._ending: deque[Exchange] = deque()
        """Calls whose client has gone; they are cancelled in its turns."""
        self._queued = False
        """Whether it will get a turn; nothing is read until then."""
        self.partial: Partial
        """Counts what came of requests and is not worked on."""

    def become_known(self, principal: Principal | None) -> None:
        """Somebody was known by a call: it may send more."""
        self.partial.became_known()
        if principal is not None:
            self.flow = self._clients.fair_queue.flow(principal)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Work on a call behind this tick; until then it counts in `receiver`.

        Where nobody is known yet, it is all of its turn, as with remoting: others at
        that address wait for it.
        """
        self.receiver.until -= _CALL_S if self.known else math.inf
        self._clients.fair_queue.owed_s += _CALL_S
        self.receiver.working += 1
        return asyncio.get_running_loop().create_task(work)

    def ends(self, call: Exchange) -> None:
        """A call is to be cancelled, when that holds up nobody."""
        fair_queue = self._clients.fair_queue
        if not self._ending and fair_queue.is_free():
            call.cancel()
            fair_queue.owed_s += _CALL_S
        else:
            self._ending.append(call)
            self._queue()

    def close(self) -> None:
        """End it, and all of its calls at once."""
        super().close()
        self._end_calls(len(self._ending))

    def held(self, size: int) -> None:
        """Answers that wait hold more or less."""
        if size > 0:
            self._clients.budget.hold(self, size)
        else:
            self._clients.budget.let_go(self, -size)

    def holds_back(self) -> bool:
        """Whether it has taken its quota."""
        return self._queued or (self.share is not None and self.share.held_back)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        if certificate := transport.get_extra_info("peercert"):
            self.source = msgspec.structs.replace(self.source, certificate=certificate)
        self._clients.open[self._number] = self
        self.listener.unauthenticated.joined(self)
        self.partial = Partial(self.listener.unauthenticated, self)
        if self.share is not None:
            self.share.belongs_to(self)
        super().connection_made(transport)
        self.pause_or_resume()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self.share is not None:
            self.share.charge(0, len(data))
        self.active = True
        fair_queue = self._clients.fair_queue
        if self._queued or not fair_queue.is_free():
            self._kept.append(data)
            fair_queue.owed_s += HEARING_S
            self._queue()
            return
        self.receiver.feed(data, fair_queue.tick_over_at)
        if self.receiver.frames:
            self._queue()

    def _end_calls(self, most: int) -> None:
        for _ in range(min(len(self._ending), most)):
            self._ending.popleft().cancel()
            self._clients.fair_queue.owed_s += _CALL_S

    def _queue(self) -> None:
        if not self._queued:
            self._queued = True
            self._clients.fair_queue.join(self)
            self.pause_or_resume()

    def take_turn(self, _now: float, until: float) -> int:
        """Take some of the frames that waited, and say how many."""
        fair_queue = self._clients.fair_queue
        self._end_calls(TURN_REQUESTS)
        kept, self._kept = self._kept, []
        taken = self.receiver.feed(b"".join(kept), until)
        self._queued = False
        if self.receiver.frames or self._ending:
            self._queue()
        elif self.closed:
            return taken
        elif fair_queue.is_full(self.flow):
            self._queued = True
            fair_queue.hold_back(self)
        self.pause_or_resume()
        return taken

    def connection_lost(self, error: Exception | None) -> None:
        """The client has gone."""
        if self in self.flow.held_back:
            del self.flow.held_back[self]
            self._queued = False
        super().connection_lost(error)
        self._clients.open.pop(self._number, None)
        self.partial.left()
        self._clients.budget.leave(self)
        if self.share is not None:
            self.share.leave()


class Clients:
    """All connections that speak HTTP/2.

    Args:
        service: Answers their calls.
        server: Whose listeners hand them over.
    """

    def __init__(self, service: Messaging, server: Server) -> None:
        self.service = service
        self._server = server
        self.fair_queue = server.fair_queue
        self.budget = service.budget
        self.paths = {one.path: one for one in messaging_service.methods()}
        self._numbers = itertools.count()
        self.open: dict[int, Client] = {}
        """Those that are connected."""
        self._limits = Limits(
            # Clients wait with more, as HTTP/2 wants it.
            streams=service.node.config.limits.requests_in_flight,
            fields_bytes=messaging_service.METADATA_BYTES,
            keepalive_s=messaging_service.KEEPALIVE_S,
        )

    def accept(self, client: Accepted) -> Client:
        """A protocol for a client's connection."""
        return Client(self, next(self._numbers), client, self._limits)

    def close(self) -> None:
        """Close all of them."""
        for client in list(self.open.values()):
            client.close()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Take calls until the end of the block."""
        self._server.http2 = self
        try:
            yield
        finally:
            # Who comes now goes elsewhere.
            self._server.http2 = None
            self.service.end_sessions()
            await self._end()
            self.close()

    async def _end(self) -> None:
        """Let calls end that have begun, but not for long."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + messaging_service.GRACE_S
        for client in self.open.values():
            client.drain()
        while loop.time() < until_s and any(  # noqa: ASYNC110 - once, at shutdown
            one.in_flight for one in self.open.values()
        ):
            await asyncio.sleep(_POLL_S)
