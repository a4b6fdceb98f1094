"""Clients that have said who they are: what they want, and how to tell them things.

A client opens a Telemetry stream and sends its settings; that is a session. Two clients
with one id are told apart by their connections, and neither takes the other's place.
While its stream is open a session is a `Link`: what the node tells its clients by
frames goes out as commands (see `pushes`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.grpc import pushes
from ropeway.gateway.grpc.caller import Caller
from ropeway.gateway.grpc.validation import named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.acl.api import Principal
    from ropeway.gateway.grpc.caller import Origin
    from ropeway.gateway.grpc.protocol import Settings, TelemetryCommand
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.wire.frame import Buffer

_MAX_WAITING = 1024
"""Commands that a client has not taken; more are dropped, as a full socket would."""


class Session(Caller):
    """One client, while its stream is open.

    Args:
        node: Where it is connected.
        origin: Its connection.
        language: One of `Language`'s names.
        client_id: What it calls itself.
        principal: Who that is, where access control is on.
    """

    __slots__ = ("_ending", "client_id", "commands", "lite_group", "settings")

    def __init__(
        self,
        node: Node,
        origin: Origin,
        language: str,
        client_id: str,
        principal: Principal | None = None,
    ) -> None:
        super().__init__(node, origin, language, principal)
        self.client_id = client_id
        self._ending = False
        self.settings: Settings
        """What it wants, completed with what the server says."""
        self.lite_group: str | None = None
        """The group in which it consumes lite topics, if it does."""
        self.commands: asyncio.Queue[TelemetryCommand | None] = asyncio.Queue(
            _MAX_WAITING
        )
        """What it is to be told; None: that its stream ends."""

    @property
    def group(self) -> str | None:
        """The group that it consumes in; None for a producer."""
        if not self.settings.HasField("subscription"):
            return None
        return named(self.settings.subscription.group)

    def tell(self, command: TelemetryCommand) -> None:
        """Say something on the stream, unless the client takes nothing."""
        if not self.closed and not self.commands.full():
            self.commands.put_nowait(command)

    def push(self, *data: Buffer) -> None:
        """What remoting clients are sent as a frame."""
        command = pushes.command(self._node, self, b"".join(data))
        if command is not None:
            self.tell(command)

    def close(self) -> None:
        """End the stream: the client begins anew."""
        self.closed = True
        if not self._ending:
            self._ending = True
            if self.commands.full():
                self.commands.get_nowait()
            self.commands.put_nowait(None)

    def gone(self) -> None:
        """The client is no more there, nor what it registered."""
        self.closed = True
        self._node.calls.disconnected(self)
        self._node.clients.disconnected(self)


class Sessions:
    """All sessions of a node: each principal sees its own."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[str, str, str], Session] = {}
        self._by_client: dict[tuple[str, str], Session] = {}

    def add(self, session: Session) -> Session | None:
        """Keep a session; what takes its place is given back."""
        client = session.client_id, str(session.principal)
        place = (*client, session.address)
        before = self._by_place.get(place)
        self._by_place[place] = session
        self._by_client[client] = session
        return before

    def find(
        self, client_id: str, address: str, principal: Principal | None
    ) -> Session | None:
        """A client's session: that of its connection, or of another that it has."""
        client = client_id, str(principal)
        return self._by_place.get((*client, address)) or self._by_client.get(client)

    def remove(self, session: Session) -> None:
        """A session has ended."""
        client = session.client_id, str(session.principal)
        place = (*client, session.address)
        if self._by_place.get(place) is session:
            del self._by_place[place]
        if self._by_client.get(client) is session:
            del self._by_client[client]
            for (*other, _), found in self._by_place.items():
                if tuple(other) == client:
                    self._by_client[client] = found

    def __iter__(self) -> Iterator[Session]:
        """Every session."""
        return iter(list(self._by_place.values()))
