"""Servers for the client: ours, and for the same tests a real RocketMQ broker."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ropeway.testing import Gateway
from tests.system.rocketmq import RocketMQ

Server = Gateway | RocketMQ

KINDS = [
    "ropeway",
    pytest.param("rocketmq", marks=[pytest.mark.server, pytest.mark.jvm]),
]


def started(kind: str, folder: Path) -> Server:
    """A running server of a kind, which acknowledges what the disk has."""
    server = (
        Gateway(folder / "data", ["--flush", "sync"])
        if kind == "ropeway"
        else RocketMQ(folder, sync_flush=True)
    )
    server.start()
    return server


@pytest.fixture(scope="session")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Ours, which goes on from file to file: idle, it costs less than a start."""
    server = started("ropeway", tmp_path_factory.mktemp("shared"))
    yield server
    server.kill()


@pytest.fixture(scope="session", params=KINDS)
def shared_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server that all tests share; nobody stops it."""
    if request.param == "ropeway":
        yield request.getfixturevalue("shared_gateway")
        return
    server = started(request.param, tmp_path_factory.mktemp("shared"))
    yield server
    server.kill()


@pytest.fixture
def name_server(shared_server: Server) -> str:
    """Where clients ask for routes."""
    return shared_server.name_server


@pytest.fixture(params=KINDS)
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server that a test may stop."""
    server = started(request.param, tmp_path)
    yield server
    server.kill()


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Makes names of topics and groups that nobody else has."""
    return lambda kind: f"{kind}-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def topic(new_name: Callable[[str], str]) -> str:
    """A topic that nobody else has."""
    return new_name("topic")


@pytest.fixture
def group(new_name: Callable[[str], str]) -> str:
    """A group that nobody else has."""
    return new_name("group")
