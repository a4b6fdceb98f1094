"""kazoo's client, as `routing.zookeeper` uses it, in the simulated network.

After kazoo 2.11: `KazooClient._session_callback`, `ConnectionHandler._connect_attempt`
and `SequentialThreadingHandler`. What its thread of the connection does is done when a
message comes; answers and watches go on over a thread each, so that their order with
one another is chance, as in earnest.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, Any

from kazoo.client import TransactionRequest
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    SessionExpiredError,
)
from kazoo.protocol.connection import _CONNECTION_DROP
from kazoo.protocol.serialization import (
    CloseInstance,
    Create,
    Exists,
    GetChildren,
    GetData,
    PingInstance,
    Sync,
)
from kazoo.protocol.states import EventType, KazooState, KeeperState, WatchedEvent
from kazoo.security import OPEN_ACL_UNSAFE

from tests.simulation.zookeeper_servers import Connection
from tests.simulation.zookeeper_threads import Result, Thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.loop import Process
    from tests.simulation.zookeeper_servers import Ensemble
    from tests.simulation.zookeeper_tree import Event

_READ_TIMEOUT = 2 / 3
_DELAY_S, _LONGEST_DELAY_S = 0.05, 1.0
OVER = (KeeperState.CLOSED, KeeperState.EXPIRED_SESSION)


class Client:
    """Connects again and again, in one session after the other.

    Args:
        ensemble: The servers.
        process: Whose it is.
        timeout_s: How long its session is to be silent at most.
        connected: As with `routing.zookeeper.connection.make_client`.
    """

    chroot = ""
    default_acl = None
    logger = logging.getLogger("ropeway.kazoo")

    def __init__(
        self,
        ensemble: Ensemble,
        process: Process,
        timeout_s: float,
        connected: Callable[[int, float, float], None],
    ) -> None:
        self.process = process
        self.loop = ensemble.loop
        self.chance = ensemble.network.chance
        self.client_state = KeeperState.CLOSED
        self.session_id = 0
        self.connection: Connection | None = None
        self.completions, self._callbacks = Thread(self), Thread(self)
        self.handler = self
        """It makes its results itself."""
        self.has_ended = True
        self._ensemble = ensemble
        self._asked_s = timeout_s
        self._told_connected = connected
        self._listener: Callable[[str], None] = lambda _: None
        self._state = KazooState.LOST
        self._stopped = False
        self._seen = 0
        self._xid = 0
        self._queue: deque[tuple[Any, Result | None]] = deque()
        self._pending: deque[tuple[int, Any, Result | None]] = deque()
        self._data: defaultdict[str, dict[Any, None]] = defaultdict(dict)
        self._children: defaultdict[str, dict[Any, None]] = defaultdict(dict)
        self._hosts: list[str] = []
        self._delay_s = _DELAY_S
        self._read_s = timeout_s * _READ_TIMEOUT
        self._began_s = self._sent_s = self._quiet_until_s = self._deadline_s = 0.0
        self._is_pinged = False

    # -- what product code calls

    def add_listener(self, listener: Callable[[str], None]) -> None:
        """Have a function told of each change of the state; one is enough here."""
        self._listener = listener

    def start_async(self) -> None:
        """Begin to connect."""
        if self.has_ended:
            self._stopped = self.has_ended = False
            self._next()

    def stop(self) -> None:
        """End the session, and wait until it has ended."""
        self.leave()
        while not self.has_ended:
            time.sleep(1e-3)

    def leave(self) -> None:
        """Begin to end the session."""
        if not self._stopped:
            self._stopped = True
            self._ask(CloseInstance, None)

    def close(self) -> None:
        """Nothing is left to be closed."""

    def async_result(self) -> Result:
        """What a request will be answered."""
        return Result(self)

    def sync_async(self, path: str) -> Result:
        """Ask to see all that was changed by now."""
        return self._call(Sync(path), Result(self))

    def get_async(self, path: str, watch: Any = None) -> Result:
        """Ask for what a node holds."""
        return self._call(GetData(path, watch), Result(self))

    def exists_async(self, path: str, watch: Any = None) -> Result:
        """Ask whether a node is there."""
        return self._call(Exists(path, watch), Result(self))

    def get_children_async(self, path: str, watch: Any = None) -> Result:
        """Ask for the names below a node."""
        return self._call(GetChildren(path, watch), Result(self))

    def create_async(self, path: str) -> Result:
        """Ask for a node to be made."""
        return self._call(Create(path, b"", OPEN_ACL_UNSAFE, 0), Result(self))

    def transaction(self) -> TransactionRequest:
        """Changes that are made all or none."""
        return TransactionRequest(self)

    def _call(self, request: Any, result: Result) -> Result:
        if request is _CONNECTION_DROP:
            if self.connection is not None:
                self.drop(self.connection)
            return result
        if self.client_state in OVER:
            closed = self.client_state == KeeperState.CLOSED
            error = ConnectionClosedError() if closed else SessionExpiredError()
            result.set_answer(error)
        else:
            self._ask(request, result)
        return result

    def _ask(self, request: Any, result: Result | None) -> None:
        if self.client_state == KeeperState.CONNECTED:
            self._send(request, result)
        else:
            self._queue.append((request, result))

    def _send(self, request: Any, result: Result | None) -> None:
        connection = self.connection
        assert connection is not None
        self._xid += 1
        self._pending.append((self._xid, request, result))
        connection.to_server(connection.server.take, self._xid, request)
        # Requests are pings.
        self._sent_s = self.loop.time()
        self._wait_on()

    # -- the connection's thread

    def _next(self) -> None:
        """Try the next server, or wait a little where all were tried."""
        if self._stopped:
            self.has_ended = True
            self._change(KeeperState.CLOSED)
        elif self._hosts:
            self._try(self._hosts.pop())
        else:
            self._hosts = self._ensemble.hosts.split(",")
            self.chance.shuffle(self._hosts)
            wait_s = self._delay_s * self.chance.uniform(0.6, 1.4)
            self._delay_s = min(2 * self._delay_s, _LONGEST_DELAY_S)
            self._later(wait_s, self._next)

    def _try(self, host: str) -> None:
        if self.client_state != KeeperState.CONNECTING:
            self._change(KeeperState.CONNECTING)
        # What `connection._give_up_waiting` does.
        waiting, self._queue = self._queue, deque()
        for request, result in waiting:
            if result is None:
                self._queue.append((request, None))
            else:
                result.set_answer(ConnectionLoss())
        ensemble = self._ensemble
        server = ensemble.server(host)
        connection = Connection(ensemble.network, self, server)
        self.connection = connection
        self._began_s = self.loop.time()
        connection.to_server(server.connect, self.session_id, self._seen, self._asked_s)
        wait_s = self._asked_s / len(ensemble.servers)
        self._later(wait_s, self._give_up, connection)

    def _give_up(self, connection: Connection) -> None:
        if self.connection is connection and self.client_state != KeeperState.CONNECTED:
            self.drop(connection)

    def drop(self, connection: Connection) -> None:
        """Have a connection no longer, and go on to the next server."""
        if self.connection is connection:
            connection.to_server(connection.server.close)
            self.connection = None
            if self.client_state != KeeperState.CONNECTING:
                self._change(KeeperState.CONNECTING)
            self._later(0.0, self._next)

    def welcomed(
        self, connection: Connection, number: int, timeout_s: float, seen: int
    ) -> None:
        """A server has a session for us."""
        if self.connection is not connection:
            return
        self.session_id, self._seen = number, max(seen, self._seen)
        self._read_s = timeout_s * _READ_TIMEOUT
        self._is_pinged = False
        self._delay_s = _DELAY_S
        self._hosts = []
        self._sent_s = self.loop.time()
        self._change(KeeperState.CONNECTED)
        self._told_connected(number, self._began_s, timeout_s)
        waiting, self._queue = self._queue, deque()
        for request, result in waiting:
            self._send(request, result)
        self._wait_on()
        self._later(self._quiet_until_s - self.loop.time(), self._look, connection)

    def refused(self, connection: Connection) -> None:
        """The session is over."""
        if self.connection is connection:
            self.connection = None
            self._delay_s = _DELAY_S
            self._change(KeeperState.EXPIRED_SESSION)
            self._next()

    def lost(self, connection: Connection) -> None:
        """The server has closed the connection."""
        self.drop(connection)

    def pong(self, connection: Connection) -> None:
        """A server answers a ping."""
        if self.connection is connection:
            self._is_pinged = False
            self._came(connection)

    def answered(
        self, connection: Connection, xid: int, answer: Any, seen: int
    ) -> None:
        """A server answers the oldest request that waits."""
        if self.connection is not connection:
            return
        number, request, result = self._pending.popleft()
        assert number == xid, f"answer {xid} to request {number}"
        self._seen = max(seen, self._seen)
        if result is not None:
            result.set_answer(answer)
            watch = getattr(request, "watcher", None)
            if watch is not None and not isinstance(answer, Exception):
                kind = isinstance(request, GetChildren)
                watches = self._children if kind else self._data
                watches[request.path][watch] = None
        if request is CloseInstance:
            self.connection = None
            self.has_ended = True
            self._change(KeeperState.CLOSED)
        else:
            self._came(connection)

    def told(self, connection: Connection, event: Event) -> None:
        """A server tells what happened to a watched path."""
        if self.connection is not connection:
            return
        watches: list[Any] = []
        if event.kind != EventType.CHILD:
            watches += self._data.pop(event.path, {})
        if event.kind in (EventType.CHILD, EventType.DELETED):
            watches += self._children.pop(event.path, {})
        if not self._stopped:
            told = WatchedEvent(event.kind, self.client_state, event.path)
            for watch in watches:
                self._callbacks.put(partial(watch, told))
        self._came(connection)

    # -- pings

    def _came(self, connection: Connection) -> None:
        """Something has come: a ping is sent if it is time for one."""
        if self.loop.time() >= self._deadline_s:
            self._ping(connection)
        self._wait_on()

    def _ping(self, connection: Connection) -> None:
        self._is_pinged = True
        connection.to_server(connection.server.take, 0, PingInstance)
        self._sent_s = self.loop.time()

    def _wait_on(self) -> None:
        """Wait for what comes next, not longer than until the next ping."""
        jitter_s = self.chance.randint(1, 40) / 100
        now_s = self.loop.time()
        self._deadline_s = self._sent_s + self._read_s / 2 - jitter_s
        self._quiet_until_s = max(self._deadline_s, now_s + jitter_s)

    def _look(self, connection: Connection) -> None:
        """See whether nothing has come for as long as was waited."""
        if self.connection is not connection:
            return
        if self.loop.time() >= self._quiet_until_s:
            if self._is_pinged:
                self.drop(connection)
                return
            if self.loop.time() >= self._deadline_s:
                self._ping(connection)
            self._wait_on()
        wait_s = self._quiet_until_s - self.loop.time()
        # What has come while the process stood still is seen first.
        self._later(wait_s, self._later, 0.0, self._look, connection)

    # -- states

    def _change(self, state: str) -> None:
        """Be in another state, and tell of it."""
        if state == self.client_state:
            return
        was_over = self.client_state in OVER
        self.client_state = state
        if was_over and state == KeeperState.CONNECTING:
            return
        if state == KeeperState.CONNECTED:
            self._tell(KazooState.CONNECTED)
        elif state in OVER:
            self._tell(KazooState.LOST)
            expired = state == KeeperState.EXPIRED_SESSION
            self._fail(SessionExpiredError if expired else ConnectionLoss)
            self._forget_watches()
            self.session_id = self._seen = 0
        else:
            self._fail(ConnectionLoss)
            self._tell(KazooState.SUSPENDED)
            self._forget_watches()

    def _tell(self, state: str) -> None:
        if state != self._state:
            self._state = state
            self._listener(state)

    def _fail(self, kind: type[Exception]) -> None:
        waiting = [result for *_, result in (*self._pending, *self._queue)]
        self._pending.clear()
        self._queue.clear()
        for result in waiting:
            if result is not None:
                result.set_answer(kind())

    def _forget_watches(self) -> None:
        event = WatchedEvent(EventType.NONE, self.client_state, None)
        for watches in (self._children, self._data):
            for watching in watches.values():
                for watch in watching:
                    self._callbacks.put(partial(watch, event))
            watches.clear()

    def _later(self, wait_s: float, call: Callable[..., None], *arguments: Any) -> None:
        context = self.process.context.copy()
        self.loop.call_later(wait_s, call, *arguments, context=context)
