"""The model of Pulsar does what a real one does."""

from __future__ import annotations

import asyncio
import random
import time
import urllib.error
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.pulsar.commands import Ping
from tests import chance
from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.network import Network
from tests.simulation.pulsar_admin import Asked, answered
from tests.simulation.pulsar_brokers import PORT
from tests.simulation.pulsar_brokers import Pulsar as Model
from tests.simulation.pulsar_steps import CLIENTS, TOPICS
from tests.simulation.pulsar_transcript import Client, ClosedAgainError, Transcript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulation.pulsar_served import Served
    from tests.system.pulsar import Pulsar

TIMEOUT_S = 60.0
NO_TOPICS = {"allowAutoTopicCreation": False}
CONFLICT = 409
SEEDS = range(12)
FRESH = 6


def _seated(served: Served) -> Iterator[str]:
    """The subscriptions that have a consumer."""
    return (name for name, one in served.cursors.items() if one.consumer is not None)


class Modelled:
    """The model, on a loop of its own."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self._loop = loop
        self._pulsar = Model(Network(loop, random.Random(seed)), random.Random(seed), 1)
        for topic in range(TOPICS):
            self._pulsar.make(self.name(topic))

    def name(self, topic: int) -> str:
        return f"persistent://public/model/t{topic}"

    async def connect(self, who: int) -> Client:
        process = Process(f"client{who}", f"10.0.1.{who}")
        host = self._pulsar.brokers[0].host
        work = self._loop.create_connection(Client, host, PORT)
        client: Client = (await self._loop.spawn(process, work))[1]
        return client

    async def settle(self, _clients: list[Client]) -> Any:
        await asyncio.sleep(20)
        found = []
        served = self._pulsar.brokers[0].served
        for topic in range(TOPICS):
            one = served.get(self.name(topic))
            found.append(
                ((), ())
                if one is None
                else (tuple(sorted(one.producers)), tuple(sorted(_seated(one))))
            )
        return found

    async def administer(self, kind: str, topic: int) -> Any:
        name = self.name(topic)
        match kind:
            case "make":
                return self._pulsar.make(name)
            case "compact":
                self._pulsar.topics[name].compact()
            case "unload":
                broker = self._pulsar.brokers[0]
                served = broker.served.pop(name, None)
                if served is not None:
                    served.unload()
        return None

    async def ask(self, topic: int, path: str) -> Any:
        where = self.name(topic).replace("://", "/")
        path, _, index = f"{where}/{path}".partition("?index=")
        asked = Asked("GET", path, {"index": index})
        answer = answered(self._pulsar.brokers[0], asked)
        return answer.content if answer.status == HTTPStatus.OK else None

    def time_ms(self) -> int:
        return self._loop.wall_ns() // 1_000_000


class Real:
    """A real server, which is waited for until it has said what the model says."""

    def __init__(self, pulsar: Pulsar, space: str, expected: list[Any]) -> None:
        self._pulsar = pulsar
        self._space = space
        self._expected = iter(expected)
        self._began = False
        for topic in range(TOPICS):
            pulsar.admin("PUT", f"persistent/{space}/t{topic}")

    def name(self, topic: int) -> str:
        return f"persistent://{self._space}/t{topic}"

    async def connect(self, _who: int) -> Client:
        loop = asyncio.get_running_loop()
        port = self._pulsar.broker_port
        _, client = await loop.create_connection(Client, "127.0.0.1", port)
        return client

    async def settle(self, clients: list[Client]) -> Any:
        if not self._began:
            self._began = True
            await self._until(lambda: all(one.heard for one in clients))
            return None
        _, _, heard, connected = next(self._expected)
        counts = [sum(one[0] == who for one in heard) for who in range(CLIENTS)]
        await self._until(
            lambda: all(
                len(one.heard) >= count
                for one, count in zip(clients, counts, strict=True)
            )
        )
        # What would come too much comes before these.
        for client in clients:
            if not client.is_lost:
                client.pings += 1
                client.tell(Ping())
        await self._until(
            lambda: all(one.is_lost or one.pongs >= one.pings for one in clients)
        )
        return await asyncio.to_thread(self._connected, connected)

    async def _until(self, holds: Callable[[], bool]) -> None:
        until_s = asyncio.get_running_loop().time() + TIMEOUT_S
        while not holds() and asyncio.get_running_loop().time() < until_s:  # noqa: ASYNC110
            await asyncio.sleep(0.002)

    def _connected(self, expected: Any) -> Any:
        """Who is connected, once it is who the model says."""
        until_s = time.monotonic() + TIMEOUT_S
        while (found := self._now()) != expected and time.monotonic() < until_s:
            time.sleep(0.01)
        return found

    def _now(self) -> Any:
        found = []
        for topic in range(TOPICS):
            path = f"persistent/{self._space}/t{topic}/stats"
            stats = self._pulsar.admin("GET", path)
            producers = sorted(one["producerName"] for one in stats["publishers"])
            there = stats["subscriptions"].items()
            cursors = (name for name, one in there if one["consumers"])
            found.append((tuple(producers), tuple(sorted(cursors))))
        return found

    async def administer(self, kind: str, topic: int) -> Any:
        return await asyncio.to_thread(self._administer, kind, topic)

    async def ask(self, topic: int, path: str) -> Any:
        where = self.name(topic).replace("://", "/")
        try:
            return await asyncio.to_thread(self._pulsar.admin, "GET", f"{where}/{path}")
        except urllib.error.HTTPError as error:
            error.close()
            return None

    def _administer(self, kind: str, topic: int) -> Any:
        path = f"persistent/{self._space}/t{topic}"
        match kind:
            case "make":
                try:
                    self._pulsar.admin("PUT", path)
                except urllib.error.HTTPError as error:
                    return error.code != CONFLICT
                return True
            case "compact":
                self._pulsar.admin("PUT", f"{path}/compaction")
                while (
                    self._pulsar.admin("GET", f"{path}/compaction")["status"]
                    == "RUNNING"
                ):
                    pass
            case "unload":
                self._pulsar.admin("PUT", f"{path}/unload")
        return None

    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000


def modelled(seed: int) -> list[Any]:
    """What the model answers."""
    loop = SimulatedLoop()
    transcript = Transcript(Modelled(loop, seed), seed)
    loop.run_until_complete(transcript.do())
    loop.close()
    return transcript.lines


@pytest.mark.jvm
@pytest.mark.server
@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_answers_what_a_real_server_does(
    pulsar: Pulsar, pulsar_namespace: str, seed: int
) -> None:
    asyncio.run(compare(pulsar, pulsar_namespace, seed))


@pytest.mark.jvm
@pytest.mark.server
def test_the_model_answers_fresh_requests_as_a_real_server_does(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    for number in range(FRESH):
        space = f"{pulsar_namespace}-{number}"
        pulsar.make_namespace(space)
        asyncio.run(compare(pulsar, space, chance.seed() + number))


async def compare(pulsar: Pulsar, space: str, seed: int) -> None:
    """Have a real server do what the model has done."""
    expected = await asyncio.to_thread(modelled, seed)
    try:
        await heard(pulsar, space, seed, expected)
    except ClosedAgainError:
        again = f"{space}-again"
        pulsar.make_namespace(again)
        await heard(pulsar, again, seed, expected)


async def heard(pulsar: Pulsar, space: str, seed: int, expected: list[Any]) -> None:
    """Do all in a namespace, and hear what is expected."""
    pulsar.admin("POST", f"namespaces/{space}/autoTopicCreation", NO_TOPICS)
    transcript = Transcript(Real(pulsar, space, expected), seed, expected)
    try:
        await transcript.do()
    finally:
        for client in transcript.clients:
            client.transport.abort()
    assert len(transcript.lines) == len(expected)
