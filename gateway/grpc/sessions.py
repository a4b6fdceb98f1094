"""Clients that have said who they are: what they want, and how to tell them things.

A client opens a Telemetry stream and sends its settings; that is a session. Two clients
with one id are told apart by their connections, and neither takes the other's place.
While its stream is open a session is a `Link`: what the node tells its clients by
frames goes out as commands (see `pushes`).
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import TYPE_CHECKING

from ropeway.gateway.grpc import pushes
from ropeway.gateway.grpc.caller import Caller
from ropeway.gateway.grpc.message_decoder import named
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.node.creations import maker_of
from ropeway.gateway.request_limits import CreationsConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.acl.api import Principal
    from ropeway.gateway.grpc.caller import Origin
    from ropeway.gateway.grpc.protocol import Settings, TelemetryCommand
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.wire.frame import Buffer

_MAX_WAITING = 1024
"""Commands that a client has not taken; more are dropped, as a full socket would."""
STREAM_BYTES = 20 * 1024
"""What a stream takes beside its settings, about."""
_ENDED = 1024
"""Clients kept whose stream has ended, and who may yet say that they stop."""
_COPIES = 4
"""Of settings: as they came, completed, and on their way back."""
_LOOK_EVERY = 100
"""Sessions that begin, for each look for cycles among what is young. Python counts what
was made less what was freed: where others end meanwhile, it would look at thousands of
them at once, of 66 containers each."""


class Session(Caller):
    """One client, while its stream is open.

    Args:
        node: Where it is connected.
        origin: Its connection.
        language: One of `Language`'s names.
        client_id: What it calls itself.
        principal: Who that is, where access control is on.
    """

    __slots__ = (
        "_ending",
        "client_id",
        "commands",
        "held_bytes",
        "lite_group",
        "settings",
    )

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
        self.held_bytes = 0
        """What it counts."""
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
        command = pushes.command(self.node, self, b"".join(data))
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
        self.node.calls.disconnected(self)
        self.node.clients.disconnected(self)


class Sessions:
    """All sessions of a node: each principal sees its own.

    Args:
        most_bytes: What those of one user or address may take.
    """

    def __init__(self, most_bytes: int = CreationsConfig().session_bytes) -> None:
        self._most_bytes = most_bytes
        self._clients: dict[tuple[str, str], dict[str, Session]] = {}
        """Those of a client by its connections' addresses, the newest last."""
        self._held_bytes: Counter[str] = Counter()
        """By whose they are."""
        self._ended: dict[tuple[str, str], None] = {}
        """Clients whose stream has ended, the newest last."""
        self._begun = 0

    def hold(self, session: Session, settings_bytes: int) -> None:
        """Count what a session takes, as long as its stream is open.

        Args:
            session: Which may have had other settings.
            settings_bytes: How long they are.

        Raises:
            RefusedError: All of its principal, or its address, would take too much.
        """
        whose = maker_of(session.principal, session.source)
        size = STREAM_BYTES + _COPIES * settings_bytes
        held = self._held_bytes[whose] + size - session.held_bytes
        if held > self._most_bytes:
            raise RefusedError(
                Code.TOO_MANY_REQUESTS,
                f"gRPC clients of {whose:.128} would take {held} bytes; "
                f"allowed: {self._most_bytes} (creations.session_bytes)",
            )
        if not session.held_bytes:
            self._begun += 1
            if not self._begun % _LOOK_EVERY:
                gc.collect(1)
        self._held_bytes[whose] = held
        session.held_bytes = size

    def _let_go(self, session: Session) -> None:
        whose = maker_of(session.principal, session.source)
        self._held_bytes[whose] -= session.held_bytes
        session.held_bytes = 0
        if not self._held_bytes[whose]:
            del self._held_bytes[whose]

    def add(self, session: Session) -> Session | None:
        """Keep a session; what takes its place is given back."""
        client = _client_of(session)
        self._ended.pop(client, None)
        mine = self._clients.setdefault(client, {})
        before = mine.pop(session.address, None)
        mine[session.address] = session
        return before

    def find(
        self, client_id: str, address: str, principal: Principal | None
    ) -> Session | None:
        """A client's session: that of its connection, or of another that it has."""
        mine = self._clients.get((client_id, str(principal)))
        if mine is None:
            return None
        return mine.get(address) or mine[next(reversed(mine))]

    def remove(self, session: Session) -> bool:
        """A session has ended; say whether it was the last of its client."""
        self._let_go(session)
        client = _client_of(session)
        mine = self._clients.get(client, {})
        if mine.get(session.address) is not session:
            return False
        del mine[session.address]
        if mine:
            return False
        del self._clients[client]
        return True

    def cut_off(self, session: Session) -> None:
        """A stream has ended, and its client may yet say that it stops."""
        if self.remove(session):
            if len(self._ended) >= _ENDED:
                del self._ended[next(iter(self._ended))]
            self._ended[_client_of(session)] = None

    def stops(self, client_id: str, principal: Principal | None) -> bool:
        """Say whether the stream of a client that stops has just ended; forget it."""
        client = client_id, str(principal)
        if client not in self._ended:
            return False
        del self._ended[client]
        return True

    def __iter__(self) -> Iterator[Session]:
        """Every session."""
        return iter([one for mine in self._clients.values() for one in mine.values()])


def _client_of(session: Session) -> tuple[str, str]:
    return session.client_id, str(session.principal)
