"""ZooKeeper's servers: sessions, the order of changes, servers behind, and watches.

Laws:

* Changes have one order, the leader's. Each server makes them in that order, some time
  later; it answers a client's requests in the order in which they came, and a read only
  when the client's own changes before it are made there.
* A session is over when the leader says so: it has not been heard of for its time. It
  hears of sessions from the servers each half tick, as the real one does.
* Whoever is on a connection is told of watched changes before the answer to the request
  that led to them. Watches are forgotten with the connection.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

from kazoo.protocol.serialization import (
    CloseInstance,
    Exists,
    GetChildren,
    GetData,
    Ping,
    Sync,
)
from kazoo.protocol.states import EventType

from tests.simulation.loop import Process
from tests.simulation.zookeeper_tree import Tree

if TYPE_CHECKING:
    import contextvars
    import random
    from collections.abc import Callable

    from kazoo.exceptions import ZookeeperError

    from tests.simulation.network import Network
    from tests.simulation.zookeeper_client import Client
    from tests.simulation.zookeeper_tree import Event

PORT = 2181
TICK_S = 0.5
SESSION_S = (1.0, 30.0)
"""What a session may ask for; as `tests.system.zookeeper` is set up."""
LAG_S = (50e-6, 3e-3)
LATE = 0.03
LATE_S = (5e-3, 0.4)
"""How far a server is behind the leader, mostly and at times."""
READS = (Exists, GetChildren, GetData)


class Session:
    """A session, as the leader knows it."""

    def __init__(self, number: int, timeout_s: float) -> None:
        self.number = number
        self.timeout_s = timeout_s
        self.until_s = 0.0
        """When it is over, if nothing is heard of it."""
        self.connection: Connection | None = None


class Asked:
    """A request that a server has not answered."""

    def __init__(self, xid: int, request: Any, index: int) -> None:
        self.xid = xid
        self.request = request
        self.index = index
        """The change that must be made before."""
        self.answer: Any = None


class Connection:
    """Between a client and a server: what one sends reaches the other in order."""

    def __init__(self, network: Network, client: Client, server: Server) -> None:
        self.client = client
        self.server = server
        self.session: Session | None = None
        """None before the server knows it, and when it has closed."""
        self.asked: deque[Asked] = deque()
        self.silent = False
        """Whether nothing gets over any more, and nobody is told."""
        self.loses: Callable[[Any], None] | None = None
        """Loses it, and what is to be changed."""
        self._network = network
        self._last_s = [0.0, 0.0]

    def to_server(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have the server hear something."""
        self._send(0, self.server.process, call, *arguments)

    def to_client(self, call: Callable[..., None], *arguments: Any) -> None:
        """Have the client hear something."""
        self._send(1, self.client.process, call, *arguments)

    def _send(
        self, way: int, target: Process, call: Callable[..., None], *arguments: Any
    ) -> None:
        if self.silent:
            return
        source = self.client.process if way == 0 else self.server.process
        when_s = self._network.arrival_s(source.host, target.host)
        self._last_s[way] = when_s = max(when_s, self._last_s[way] + 1e-7)
        context: contextvars.Context = target.context.copy()
        self._network.loop.call_at(when_s, self._come, call, arguments, context=context)

    def _come(self, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if not self.silent:
            call(self, *arguments)


class Server:
    """One server: its copy of the tree, and who is connected to it."""

    def __init__(self, ensemble: Ensemble, number: int) -> None:
        self.process = Process(f"zk.{number}", f"10.0.3.{number + 1}")
        self.tree = Tree()
        self.heard: dict[int, None] = {}
        """Sessions that the leader is told of next."""
        self._ensemble = ensemble
        self._data: defaultdict[str, dict[Connection, None]] = defaultdict(dict)
        self._children: defaultdict[str, dict[Connection, None]] = defaultdict(dict)
        self._last_s = 0.0

    # -- connections

    def connect(
        self, connection: Connection, number: int, seen: int, asked_s: float
    ) -> None:
        """A client wants a session, or that of a number again."""
        ensemble = self._ensemble
        if ensemble.is_down:
            return
        if seen > self.tree.zxid:
            # It would see older things than it has seen elsewhere.
            connection.to_client(connection.client.lost)
            return
        if number == 0:
            session, index = ensemble.begin(asked_s)
        else:
            known, index = ensemble.sessions.get(number), self.tree.zxid
            if known is None:
                connection.to_client(connection.client.refused)
                return
            session = known
        if session.connection is not None:
            session.connection.server.close(session.connection)
        session.connection = connection
        connection.session = session
        ensemble.hear(session)
        connection.asked.append(Asked(0, None, index))
        self._answer(connection)

    def close(self, connection: Connection) -> None:
        """End a connection, and forget what it watched."""
        if connection.session is None:
            return
        if connection.session.connection is connection:
            connection.session.connection = None
        connection.session = None
        connection.asked.clear()
        for watches in (self._data, self._children):
            for watching in watches.values():
                watching.pop(connection, None)
        connection.to_client(connection.client.lost)

    def take(self, connection: Connection, xid: int, request: Any) -> None:
        """A request has come."""
        session, ensemble = connection.session, self._ensemble
        if session is None or ensemble.is_down:
            return
        self.heard[session.number] = None
        if isinstance(request, Ping):
            connection.to_client(connection.client.pong)
            return
        asked = Asked(xid, request, 0)
        connection.asked.append(asked)
        if isinstance(request, Sync):
            asked.index = ensemble.last
        elif not isinstance(request, READS):
            if request is CloseInstance:
                ensemble.sessions.pop(session.number, None)
            elif connection.loses is not None:
                connection.loses(request)
                return
            asked.index = ensemble.submit(session.number, request, (self, asked))
        self._answer(connection)

    def _answer(self, connection: Connection) -> None:
        """Answer what can be answered, in order."""
        client = connection.client
        while connection.asked and connection.asked[0].index <= self.tree.zxid:
            one = connection.asked.popleft()
            request, answer, session = one.request, one.answer, connection.session
            assert session is not None
            if request is None:
                connection.to_client(
                    client.welcomed, session.number, session.timeout_s, self.tree.zxid
                )
                continue
            if isinstance(request, Sync):
                answer = request.path
            elif isinstance(request, READS):
                answer = self._read(connection, request)
            connection.to_client(client.answered, one.xid, answer, self.tree.zxid)

    def _read(self, connection: Connection, request: Any) -> Any:
        error: ZookeeperError | None = None
        try:
            answer = self.tree.read(request)
        except Exception as raised:  # noqa: BLE001 - it is the answer
            answer = error = raised
        if request.watcher and error is None:
            kind = self._children if isinstance(request, GetChildren) else self._data
            kind[request.path][connection] = None
        return answer

    # -- changes

    def follow(self, entry: tuple[Any, ...]) -> None:
        """The leader has ordered a change: it is made here after a time."""
        loop, lag_s = self._ensemble.loop, self._ensemble.lag_s()
        self._last_s = when_s = max(loop.time() + lag_s, self._last_s + 1e-7)
        loop.call_at(when_s, self._make, *entry, context=self.process.context.copy())

    def _make(
        self, number: int, request: Any, origin: tuple[Server, Asked] | None
    ) -> None:
        if request is None:
            # A session begins.
            self.tree.zxid += 1
            events: list[Event] = []
            answer = None
        elif request is CloseInstance:
            events, answer = self.tree.end(number), True
        else:
            answer, events = self.tree.apply(request, number)
        for event in events:
            self._tell(event)
        if origin is not None and origin[0] is self:
            origin[1].answer = answer
        for connection in self._ensemble.connections(self):
            self._answer(connection)
            session = connection.session
            if request is CloseInstance and session and session.number == number:
                self.close(connection)

    def _tell(self, event: Event) -> None:
        watching: dict[Connection, None] = {}
        if event.kind != EventType.CHILD:
            watching |= self._data.pop(event.path, {})
        if event.kind in (EventType.CHILD, EventType.DELETED):
            watching |= self._children.pop(event.path, {})
        for connection in watching:
            connection.to_client(connection.client.told, event)


class Ensemble:
    """All servers, and what the leader alone knows.

    Args:
        network: Between clients and servers.
        chance: How far servers are behind; None: not at all.
        count: How many servers there are.
    """

    def __init__(
        self, network: Network, chance: random.Random | None, count: int = 3
    ) -> None:
        self.loop = network.loop
        self.network = network
        self.ended: dict[int, None] = {}
        """Those that were ended before their time."""
        self.sessions: dict[int, Session] = {}
        """Those that are not over, by number."""
        self.last = 0
        """The number of the last change."""
        self.down_until_s = 0.0
        self._chance = chance
        self._numbers = 0
        self._joined: dict[Session, None] = {}
        self.servers = [Server(self, number) for number in range(count)]
        self._half_ticks = 0
        self._tick()

    @property
    def hosts(self) -> str:
        """Where clients connect."""
        return ",".join(f"{one.process.host}:{PORT}" for one in self.servers)

    @property
    def is_down(self) -> bool:
        """Whether no server answers: they have no leader."""
        return self.loop.time() < self.down_until_s

    def server(self, address: str) -> Server:
        """The server at an address."""
        host = address.partition(":")[0]
        return next(one for one in self.servers if one.process.host == host)

    def connections(self, server: Server) -> list[Connection]:
        """Who is connected to a server."""
        return [
            one.connection
            for one in self._joined
            if one.connection is not None and one.connection.server is server
        ]

    def connection(self, process: Process) -> Connection | None:
        """The connection of a process, if it has one."""
        for one in self._joined:
            if one.connection is not None and one.connection.client.process is process:
                return one.connection
        return None

    def lag_s(self) -> float:
        """How far behind a server is with the next change."""
        if self._chance is None:
            return 0.0
        late = self._chance.random() < LATE
        return self._chance.uniform(*(LATE_S if late else LAG_S))

    # -- what the leader does

    def begin(self, asked_s: float) -> tuple[Session, int]:
        """Begin a session; and the number of the change that does."""
        self._numbers += 1
        shortest_s, longest_s = SESSION_S
        made = Session(self._numbers, min(max(asked_s, shortest_s), longest_s))
        self.sessions[made.number] = made
        self._joined[made] = None
        return made, self.submit(made.number, None)

    def submit(
        self, number: int, request: Any, origin: tuple[Server, Asked] | None = None
    ) -> int:
        """Order a change of a session; its number."""
        self.last += 1
        for one in self.servers:
            one.follow((number, request, origin))
        return self.last

    def hear(self, session: Session) -> None:
        """Know that a session lives."""
        ticks = int((self.loop.time() + session.timeout_s) / TICK_S) + 1
        session.until_s = max(session.until_s, ticks * TICK_S)

    def expire(self, session: Session) -> None:
        """Have a session be over."""
        if self.sessions.pop(session.number, None) is not None:
            self.submit(session.number, CloseInstance)

    def _tick(self) -> None:
        self._half_ticks += 1
        now_s = self.loop.time()
        if not self.is_down:
            for server in self.servers:
                for number in server.heard:
                    if number in self.sessions:
                        self.hear(self.sessions[number])
                server.heard.clear()
            if self._half_ticks % 2:
                for session in [*self.sessions.values()]:
                    if session.until_s <= now_s:
                        self.expire(session)
                over = [
                    one
                    for one in self._joined
                    if one.number not in self.sessions and one.connection is None
                ]
                for one in over:
                    del self._joined[one]
        context = self.servers[0].process.context.copy()
        self.loop.call_later(TICK_S / 2, self._tick, context=context)

    # -- faults

    def stop(self, seconds: float) -> None:
        """Have no leader for a time: all connections are lost, and no session ends."""
        self.down_until_s = max(self.down_until_s, self.loop.time() + seconds)
        for session in self._joined:
            if session.connection is not None:
                session.connection.server.close(session.connection)
        context = self.servers[0].process.context.copy()
        self.loop.call_at(self.down_until_s, self._lead, context=context)

    def heal(self) -> None:
        """Have a leader again, if there is none."""
        if self.is_down:
            self.down_until_s = self.loop.time()
            self._lead()

    def _lead(self) -> None:
        """A new leader knows of no session how long it was silent."""
        for session in self.sessions.values():
            self.hear(session)
