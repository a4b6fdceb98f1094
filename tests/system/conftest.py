"""Deployments that guard, which files of attacks share: each is started once."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.system.guarded_deployments import (
    embedded,
    secured_pulsar,
    two_nodes,
    with_tokens,
    workers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.system.guarded_deployments import Deployment
    from tests.system.pulsar import Pulsar

ON_PULSAR = [pytest.mark.jvm, pytest.mark.server]
KINDS = [
    pytest.param("one node", marks=pytest.mark.slow),
    pytest.param("workers", marks=pytest.mark.slow),
    pytest.param("two nodes", marks=ON_PULSAR),
    pytest.param("Pulsar with tokens", marks=ON_PULSAR),
]


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """A Pulsar with access control."""
    pulsar = secured_pulsar(tmp_path_factory.mktemp("pulsar"))
    try:
        pulsar.start()
        yield pulsar
    finally:
        pulsar.kill()


@pytest.fixture(scope="session", params=KINDS)
def there(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    """What is attacked."""
    directory = tmp_path_factory.mktemp("attacked")
    find = request.getfixturevalue
    starts: dict[str, Any] = {
        "one node": lambda: embedded(directory),
        "workers": lambda: workers(directory),
        "two nodes": lambda: two_nodes(directory, find("secured"), find("zookeeper")),
        "Pulsar with tokens": lambda: with_tokens(directory, find("secured")),
    }
    with ExitStack() as stack:
        found = stack.enter_context(starts[request.param]())
        asyncio.run(found.prepare())
        yield found
