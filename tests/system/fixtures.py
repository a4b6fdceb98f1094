"""Fixtures: foreign servers that tests share, each with a place of its own there.

And a directory for other users of the machine.
"""

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.pulsar import Pulsar
from tests.system.zookeeper import ZooKeeper

numbers = itertools.count(1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin to make images, which takes minutes, before tests of containers come."""
    # Not in one that gives out work, of which the others are copies.
    runs = not session.config.pluginmanager.has_plugin("dsession")
    is_first = runs and os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
    wanted = any(item.get_closest_marker("containers") for item in session.items)
    if wanted and is_first and not session.config.option.collectonly:
        # Most runs have none of these tests.
        from tests.system import container_images, containers

        if containers.missing() is None:
            container_images.start()


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


@contextlib.contextmanager
def running(directory: Path, **given: Any) -> Iterator[Pulsar]:
    """A Pulsar, which is killed at the end."""
    server = Pulsar(directory, **given)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """A Pulsar 4.0.8 that tests share which leave it running."""
    with running(tmp_path_factory.mktemp("pulsar")) as server:
        yield server


@pytest.fixture(scope="session")
def newer_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """Likewise, a Pulsar 4.2.4."""
    with running(tmp_path_factory.mktemp("newer"), version="4.2.4") as server:
        yield server


@pytest.fixture(
    params=[
        pytest.param("pulsar", id="4.0.8"),
        pytest.param("newer_pulsar", id="4.2.4", marks=pytest.mark.slow),
    ]
)
def each_pulsar(request: pytest.FixtureRequest) -> Pulsar:
    """Each of these two versions of Pulsar."""
    found: Pulsar = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def counting_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """Likewise, one that is set up to tell indexes, and nothing else of brokers."""
    index = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"
    settings = {"brokerEntryMetadataInterceptors": index}
    with running(tmp_path_factory.mktemp("counting"), settings=settings) as server:
        yield server


@pytest.fixture(scope="session")
def mortal_pulsar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """One that tests kill; it acknowledges an entry when the disk has it."""
    with running(tmp_path_factory.mktemp("mortal"), journal_sync=True) as server:
        yield server


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
