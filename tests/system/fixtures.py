"""Fixtures: servers that are not ours, started once for all tests that share them."""

import itertools
from collections.abc import Iterator

import pytest

from tests.system.pulsar import Pulsar

numbers = itertools.count(1)


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
