"""The model of ZooKeeper does what a real one does."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.connection import _CONNECTION_DROP
from kazoo.protocol.serialization import (
    CheckVersion,
    Close,
    Connect,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    SetData,
    Sync,
    Transaction,
    int_struct,
)
from kazoo.protocol.states import Callback, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import OPEN_ACL_UNSAFE

from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.network import Network
from tests.simulation.zookeeper_client import Client
from tests.simulation.zookeeper_servers import Ensemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.system.zookeeper import ZooKeeper

CLIENTS = 3
STEPS = 120
TIMEOUT_S = 120.0
NAMES = ("a", "b", "s0000000000", "s0000000001", "s0000000002")


class Steps:
    """What clients do: made from a seed, whatever they are answered.

    Args:
        seed: Where all of it comes from.
        told: Called with who, which watch, and the event.
    """

    def __init__(self, seed: int, told: Callable[[int, int, Any], None]) -> None:
        self._chance = random.Random(f"{seed}/zookeeper")
        self._told = told
        self._watches = 0
        self._closed = [0] * CLIENTS
        """Up to which of their watches clients do not hear of any more."""

    def __iter__(self) -> Iterator[tuple[str, int, list[Any]]]:
        for _ in range(STEPS):
            who = self._chance.randrange(CLIENTS)
            kinds = ["ask"] * 30 + ["close", "expire", "drop"]
            kind = self._chance.choice(kinds)
            count = self._chance.choice([1, 1, 2, 4, 8]) if kind == "ask" else 0
            if kind == "close":
                self._closed[who] = self._watches
            yield kind, who, [self._request(who) for _ in range(count)]

    def _path(self) -> str:
        depth = self._chance.choice([1, 1, 2, 2, 3])
        return "".join(f"/{self._chance.choice(NAMES)}" for _ in range(depth))

    def _request(self, who: int) -> Any:
        chance = self._chance
        if chance.random() < 0.2:
            return Transaction([self._change() for _ in range(chance.randint(1, 4))])
        if chance.random() < 0.5:
            return self._change(alone=True)
        kind = chance.choice([Exists, GetChildren, GetData, Sync])
        if kind is Sync:
            return Sync(self._path())
        return kind(self._path(), self._watch(who) if chance.random() < 0.6 else None)

    def _watch(self, who: int) -> Callable[[Any], None]:
        self._watches += 1
        number = self._watches

        def watch(event: Any) -> None:
            if number > self._closed[who]:
                self._told(who, number, event)

        return watch

    def _change(self, *, alone: bool = False) -> Any:
        chance, path = self._chance, self._path()
        version = chance.choice([-1, -1, -1, 0, 1, 2])
        data = b"." * chance.randrange(3)
        match chance.choice("ccccddss" if alone else "ccccddssv"):
            case "c":
                flags = chance.choice([0, 0, 0, 1, 2, 3])
                path = path.rpartition("/")[0] + "/s" if flags & 2 else path
                return Create(path, data, OPEN_ACL_UNSAFE, flags)
            case "d":
                return Delete(path, version)
            case "s":
                return SetData(path, data, version)
        return CheckVersion(path, version)


class Plain:
    """Answers and events, without what two servers may have different."""

    def __init__(self) -> None:
        self.sessions: dict[int, int] = {0: -1}
        """The order in which sessions began, by their numbers."""
        self.events: list[tuple[int, int, str, str | None]] = []

    def told(self, who: int, watch: int, event: Any) -> None:
        """Note an event."""
        self.events.append((who, watch, event.type, event.path))

    def taken(self) -> list[Any]:
        """What was told since the last time."""
        events, self.events = self.events, []
        return sorted(events, key=repr)

    def answer(self, answer: Any) -> Any:
        """An answer."""
        if isinstance(answer, Exception):
            return type(answer).__name__
        if isinstance(answer, ZnodeStat):
            times = answer.czxid, answer.mzxid, answer.pzxid
            return (
                *[sorted({*times}).index(one) for one in times],
                *(answer.version, answer.cversion, answer.aversion),
                self.sessions[answer.ephemeralOwner],
                *(answer.dataLength, answer.numChildren),
            )
        if isinstance(answer, tuple):
            return tuple(self.answer(one) for one in answer)
        if isinstance(answer, list):
            given = self.answers(answer)
            # The names of children have no order.
            names = all(isinstance(one, str) for one in answer)
            return sorted(given) if names else given
        return answer

    def answers(self, answers: list[Any]) -> list[Any]:
        """Answers, in their order."""
        return [self.answer(one) for one in answers]


def run_real(server: ZooKeeper, root: str, seed: int) -> Iterator[Any]:
    """What a real server answers and tells, step by step."""
    plain = Plain()
    owner = KazooClient(server.address)
    owner.start(TIMEOUT_S)
    owner.ensure_path(root)
    owner.stop()
    owner.close()

    def connected() -> KazooClient:
        retry = KazooRetry(max_tries=-1, delay=0.01, max_delay=0.1)
        client = KazooClient(server.address + root, 20.0, connection_retry=retry)
        client.start(TIMEOUT_S)
        plain.sessions[client.client_id[0]] = len(plain.sessions)
        return client

    def ask(who: int, requests: list[Any]) -> list[Any]:
        asked = []
        for one in requests:
            asked.append(clients[who].handler.async_result())
            clients[who]._call(rooted(root, one), asked[-1])
        for one in asked:
            assert one.wait(TIMEOUT_S)
        return [one.value if one.exception is None else one.exception for one in asked]

    def drain() -> None:
        for who, client in enumerate(clients):
            ask(who, [Sync("/")])
            drained = threading.Event()
            client.handler.dispatch_callback(Callback("watch", drained.set, ()))
            assert drained.wait(TIMEOUT_S)

    clients = [connected() for _ in range(CLIENTS)]
    for kind, who, requests in Steps(seed, plain.told):
        answers: list[Any] = []
        client = clients[who]
        if kind == "ask":
            answers = [unrooted(root, one) for one in ask(who, requests)]
        elif kind == "close":
            client.stop()
            client.close()
            clients[who] = connected()
        elif kind == "drop":
            drop(client)
        else:
            expire(server, client)
            plain.sessions[client.client_id[0]] = len(plain.sessions)
        drain()
        yield kind, who, requests, plain.answers(answers), plain.taken()
    for one in clients:
        one.stop()
        one.close()


def drop(client: KazooClient) -> None:
    """Have a client lose its connection, and wait until it has another."""
    lost = threading.Event()
    client.add_listener(lambda state: lost.set() if state == "SUSPENDED" else None)
    client._call(_CONNECTION_DROP, client.handler.async_result())
    assert lost.wait(TIMEOUT_S)
    assert client._live.wait(TIMEOUT_S)


def expire(server: ZooKeeper, client: KazooClient) -> None:
    """End a client's session at the server, and wait until it has another."""
    before = client.client_id
    number, password = before
    # In one piece: the client, which loses its connection by it, comes too late.
    begin = Connect(0, 0, 20_000, number, password, False).serialize()
    end = int_struct.pack(1) + int_struct.pack(Close.type)
    with socket.create_connection(("127.0.0.1", server.port), TIMEOUT_S) as connection:
        for one in (begin, end):
            connection.sendall(int_struct.pack(len(one)) + one)
        while connection.recv(1 << 16):
            pass
    until_s = time.monotonic() + TIMEOUT_S
    while client.client_id in (None, before):
        assert time.monotonic() < until_s
        time.sleep(0.005)


def rooted(root: str, request: Any) -> Any:
    """A request about paths below a root; kazoo does this in its own methods only."""
    if isinstance(request, Transaction):
        return Transaction([rooted(root, one) for one in request.operations])
    return request._replace(path=(root + request.path).rstrip("/"))


def unrooted(root: str, answer: Any) -> Any:
    """An answer, with paths from a root on."""
    return answer.removeprefix(root) if isinstance(answer, str) else answer


def run_model(servers: int, seed: int) -> Iterator[Any]:
    """What the model answers and tells."""
    plain = Plain()
    loop = SimulatedLoop()
    chance = random.Random(seed)
    network = Network(loop, chance)
    ensemble = Ensemble(network, chance if servers > 1 else None, servers)

    def until(holds: Callable[[], bool]) -> None:
        until_s = loop.time() + TIMEOUT_S
        while not holds():
            assert loop.time() < until_s
            loop.run_until_complete(asyncio.sleep(0.001))

    def connected(who: int) -> Client:
        process = Process(f"client.{who}", f"10.0.1.{who}")
        client = Client(ensemble, process, 20.0, lambda *_: None)
        client.start_async()
        until(lambda: client.client_state == "CONNECTED")
        plain.sessions[client.session_id] = len(plain.sessions)
        return client

    def ask(who: int, requests: list[Any]) -> list[Any]:
        # A server may be behind; so all answers are of now.
        asked = [clients[who].async_result() for _ in range(len(requests) + 1)]
        for one, result in zip([Sync("/"), *requests], asked, strict=True):
            clients[who]._call(one, result)
        until(lambda: all(one.is_set for one in asked))
        return [one.value if one.exception is None else one.exception for one in asked]

    def drain() -> None:
        for who, client in enumerate(clients):
            ask(who, [])
            drained: list[int] = []
            client._callbacks.put(lambda drained=drained: drained.append(1))
            until(lambda drained=drained: bool(drained))

    clients = [connected(who) for who in range(CLIENTS)]
    for kind, who, requests in Steps(seed, plain.told):
        answers: list[Any] = []
        client = clients[who]
        before = client.session_id
        if kind == "ask":
            answers = ask(who, requests)[1:]
        elif kind == "close":
            client.leave()
            until(lambda client=client: client.has_ended)
            clients[who] = connected(who)
        elif kind == "drop":
            assert client.connection is not None
            client.drop(client.connection)
            until(lambda client=client: client.client_state == "CONNECTED")
        else:
            # As who ends it with the real server takes its connection away.
            session = ensemble.sessions[before]
            assert session.connection is not None
            session.connection.server.close(session.connection)
            ensemble.expire(session)
            known = 0, before
            until(lambda client=client, known=known: client.session_id not in known)
            plain.sessions[client.session_id] = len(plain.sessions)
        drain()
        yield kind, who, requests, plain.answers(answers), plain.taken()
    loop.close()


@pytest.mark.jvm
@pytest.mark.server
@pytest.mark.parametrize("seed", range(10))
def test_the_model_answers_and_tells_what_a_real_server_does(
    zookeeper: ZooKeeper, seed: int
) -> None:
    real = run_real(zookeeper, f"/simulation/{seed}-{time.time_ns()}", seed)
    one, three = run_model(1, seed), run_model(3, seed)
    for number, (found, alone, among) in enumerate(zip(real, one, three, strict=True)):
        where = f"step {number}: {found[:3]}"
        assert alone[3:] == found[3:], where
        assert among[3:] == found[3:], where
