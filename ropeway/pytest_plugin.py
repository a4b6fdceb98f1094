"""The fixtures that pytest finds where Ropeway is installed."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from ropeway.testing import running_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.testing import Gateway


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting `ropeway_topics` to pytest's configuration."""
    parser.addini(
        "ropeway_topics",
        "Topics that ropeway_gateway has from the start: NAME or NAME:QUEUES each.",
        type="args",
        default=[],
    )


@pytest.fixture(scope="session")
def ropeway_gateway(pytestconfig: pytest.Config) -> Iterator[Gateway]:
    """Run a gateway that all tests of a session share; do not stop it."""
    with running_gateway(topics=pytestconfig.getini("ropeway_topics")) as gateway:
        yield gateway


@pytest.fixture
def ropeway_topic() -> str:
    """Make a topic name that no other test has; sending to it creates the topic."""
    return f"topic-{uuid.uuid4().hex[:12]}"
