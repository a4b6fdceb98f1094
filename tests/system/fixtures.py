"""Fixtures: foreign servers that tests share, each with a place of its own there.

And a directory for other users of the machine.
"""

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.pulsar import Pulsar
from tests.system.zookeeper import ZooKeeper

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """A ZooKeeper server; who stops it starts it again."""
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def chroot(zookeeper: ZooKeeper) -> str:
    """The URL of a route store on it that nobody else uses."""
    return f"zookeeper://{zookeeper.address}/tests/{next(numbers)}"


@pytest.fixture(scope="session")
def pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """A Pulsar 4.0.8 that tests share which leave it running."""
    server = Pulsar(tmp_path_factory.mktemp("pulsar"))
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture
def pulsar_namespace(pulsar: Pulsar) -> str:
    """A namespace that no other test uses, which keeps all and drops repeats."""
    namespace = f"public/test-{next(numbers)}"
    pulsar.make_namespace(namespace)
    return namespace


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="ropeway-open-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        yield directory
