"""The network: transports that hand bytes to each other over links that fail.

A connection is two ends. What one end writes reaches the other in order, after a
latency; between connections nothing is ordered. As with TCP, a link that loses packets
for a while delays bytes and tears nothing out of a stream; a process that dies resets
its connections; a machine without power says nothing at all until it runs again.
"""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any

from tests.simulation.connections import RESET_S, Arriving, End, Listening
from tests.simulation.loop import PROCESS

if TYPE_CHECKING:
    import contextvars
    import random
    from collections.abc import Callable

    from tests.simulation.loop import Process, SimulatedLoop

LATENCY_S = (50e-6, 2e-3)
SLOW = 0.02
SLOW_S = (5e-3, 0.2)
"""How many deliveries are late, and by how much."""
AGAIN_S = 0.6
"""When TCP sends again to a machine that has power again."""
CUT = 0.05
"""How many deliveries come in two parts."""


class Network:
    """All hosts and what is between them.

    Args:
        loop: What hands bytes over.
        chance: When.
    """

    def __init__(self, loop: SimulatedLoop, chance: random.Random) -> None:
        self.loop = loop
        self.chance = chance
        self.listeners: dict[tuple[str, int], Listening] = {}
        self.ends: dict[End, None] = {}
        """Those that are open, the oldest first."""
        self.cut_until_s: dict[tuple[str, str], float] = {}
        """From whom to whom nothing gets, and until when."""
        self._dark: dict[str, None] = {}
        """Hosts without power."""
        self._ports = 40_000
        self.shows: Callable[[str, bytes], None] | None = None
        """Told what a host sends to a client."""
        self.tap: Callable[[], Any] | None = None
        """Makes what sees a client's end of each connection."""
        loop.create_connection = self.create_connection  # type: ignore[method-assign]
        loop.connect_accepted_socket = self.connect_accepted_socket  # type: ignore[method-assign]
        loop.add_reader = self._add_reader  # type: ignore[method-assign]
        loop.remove_reader = self._remove_reader  # type: ignore[method-assign]

    def arrival_s(self, source: str, target: str) -> float:
        """When something that is sent now arrives."""
        chance = self.chance
        late = chance.random() < SLOW
        delay_s = chance.uniform(*(SLOW_S if late else LATENCY_S))
        cut_s = self.cut_until_s.get((source, target), 0.0)
        return max(self.loop.time(), cut_s) + delay_s

    def pieces(self, data: bytes) -> list[bytes]:
        """How the bytes of a write come: whole, or cut anywhere."""
        if len(data) > 1 and self.chance.random() < CUT:
            at = self.chance.randrange(1, len(data))
            return [data[:at], data[at:]]
        return [data]

    def later(
        self,
        delay_s: float,
        context: contextvars.Context,
        callback: Callable[..., None],
        *args: Any,
    ) -> None:
        """Call a function of a process after a time."""
        self.loop.call_later(delay_s, callback, *args, context=context.copy())

    def listen(self, _host: str, port: int) -> Listening:
        """Take the place of `gateway.server.bind`."""
        process = PROCESS.get()
        assert process is not None
        return Listening(self, process, port)

    def _add_reader(self, sock: Any, callback: Any, *args: Any) -> None:
        sock.watch(lambda: callback(*args))

    def _remove_reader(self, sock: Any) -> bool:
        sock.watch(None)
        return True

    async def create_connection(
        self, factory: Callable[[], Any], host: str, port: int, **_: Any
    ) -> tuple[End, Any]:
        """Connect as `loop.create_connection` does."""
        process = PROCESS.get()
        assert process is not None
        there_s = self.arrival_s(process.host, host)
        await asyncio.sleep(there_s - self.loop.time())
        while host in self._dark:  # noqa: ASYNC110 - it is a time-out's to end
            await asyncio.sleep(1.0)  # until the caller gives up
        listener = self.listeners.get((host, port))
        back_s = self.arrival_s(host, process.host)
        if listener is None:
            await asyncio.sleep(back_s - self.loop.time())
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{host}:{port} refused")
        self._ports += 1
        ours = End(self, process, (process.host, self._ports))
        theirs = End(self, listener.process, (host, port))
        theirs._context = listener.process.context.copy()
        ours.peer, theirs.peer = theirs, ours
        if self.tap is not None and listener.is_tapped:
            ours.tap = self.tap()
        self.ends[ours] = self.ends[theirs] = None
        listener.knock(theirs)
        try:
            await asyncio.sleep(back_s - self.loop.time())
        except asyncio.CancelledError:
            ours.abort()
            raise
        if ours.lost or ours.closing:
            raise ConnectionResetError(errno.ECONNRESET, f"{host}:{port} reset")
        ours.protocol = factory()
        ours.protocol.connection_made(ours)
        ours._call(ours._take)
        return ours, ours.protocol

    async def connect_accepted_socket(
        self, factory: Callable[[], Any], sock: Arriving, **_: Any
    ) -> tuple[End, Any]:
        """Join a connection that was accepted to its protocol."""
        end = sock.end
        if end.lost:
            raise ConnectionResetError(errno.ECONNRESET, "reset before it was taken")
        end.protocol = factory()
        end.protocol.connection_made(end)
        end._call(end._take)
        return end, end.protocol

    # -- faults

    def killed(self, process: Process, *, power: bool) -> None:
        """A process is dead; its peers are told, unless the machine is off."""
        for name, listener in list(self.listeners.items()):
            if listener.process is process:
                del self.listeners[name]
        for end in list(self.ends):
            if end.process is process:
                end.lost = end.closing = True
                del self.ends[end]
                if not power:
                    self.later(
                        self.chance.uniform(*LATENCY_S),
                        end.peer._context,
                        end.peer.reset,
                    )
        if power:
            self._dark[process.host] = None

    def is_dark(self, host: str) -> bool:
        """Whether a machine has no power."""
        return host in self._dark

    def lit(self, host: str) -> None:
        """A machine has power again."""
        if host in self._dark:
            del self._dark[host]
            for end in self.ends:
                # What it has not taken is sent again, and it knows nothing of it.
                if end.peer.process.host == host and end.peer.lost and end._sent_bytes:
                    self.later(AGAIN_S, end._context, end.reset)

    def cut(self, source: str, target: str, seconds: float) -> None:
        """Have nothing get from one host to another for a time."""
        self.cut_until_s[source, target] = self.loop.time() + seconds

    def between(self, host: str) -> list[End]:
        """The ends of clients that are connected to a host."""
        return [one for one in self.ends if one.peer.process.host == host]

    def heal(self) -> None:
        """End all faults but those that have closed something."""
        self.cut_until_s.clear()
        for end in list(self.ends):
            end.deaf_until_s = 0.0
            if end.silent or end.peer.silent:
                self.later(RESET_S, end._context, end.reset)
