"""Fixtures: a running server, agents of real clients, and names nobody else uses."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.harness import Agent, Session
from tests.clients.programs import Client
from tests.system.cluster import Cluster
from tests.system.rocketmq import RocketMQ
from tests.system.ropeway import Ropeway

Server = Ropeway | RocketMQ | Cluster
SERVERS = ["embedded", "pulsar", "rocketmq"]
OURS = ["embedded", pytest.param("pulsar", marks=[pytest.mark.server])]
numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--gateway",
        choices=SERVERS,
        help="what real clients talk to, instead of Ropeway on its embedded log and "
        "then on Pulsar; rocketmq shows what a test should find",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let real clients talk to Ropeway on each of its logs."""
    if "start_server" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--gateway")
        kinds = [chosen] if chosen else OURS
        metafunc.parametrize("start_server", kinds, indirect=True, scope="session")


class Agents:
    """Agents by client, each started when it is first needed."""

    def __init__(self, directories: Callable[[], Path]) -> None:
        self._directories = directories
        self._shared: dict[Client, Agent] = {}
        self._all: list[Agent] = []

    def of(self, client: Client) -> Agent:
        """The agent of a client that all tests use."""
        if client not in self._shared or not self._shared[client].alive():
            self._shared[client] = self.another(client)
        return self._shared[client]

    def another(self, client: Client) -> Agent:
        """An agent that a test may kill."""
        agent = client.start(self._directories())
        self._all.append(agent)
        return agent

    def stop(self) -> None:
        """Stop all of them."""
        for agent in self._all:
            agent.stop()


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    """The agents of this run; a JVM starts once, not for each test."""
    started = Agents(lambda: tmp_path_factory.mktemp("agent"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def start_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """Start a server of one kind, with settings; it ends with the run."""
    started: list[Server] = []

    def make(directory: Path, **settings: Any) -> Server:
        if request.param == "embedded":
            return Ropeway(directory, **settings)
        if request.param == "rocketmq":
            return RocketMQ(directory, **settings)
        pulsar = request.getfixturevalue("pulsar")
        zookeeper = request.getfixturevalue("zookeeper")
        return Cluster(directory, pulsar, zookeeper.address, **settings)

    def start(**settings: Any) -> Server:
        server = make(tmp_path_factory.mktemp("server"), **settings)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.kill()


@pytest.fixture(scope="session")
def server(start_server: Callable[..., Server]) -> Server:
    """The server that tests share which leave it running."""
    return start_server()


@pytest.fixture
def session(agents: Agents, server: Server) -> Callable[[Client], Session]:
    """A client's agent, talking to the shared server."""
    return lambda client: Session(agents.of(client), server.name_server)


@pytest.fixture
def topic() -> str:
    """The name of a topic that no other test uses."""
    return f"topic-{next(numbers)}"


@pytest.fixture
def group() -> str:
    """The name of a group that no other test uses."""
    return f"group-{next(numbers)}"
