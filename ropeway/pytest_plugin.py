"""The fixtures that pytest finds where Ropeway is installed."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from ropeway.testing import running_gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.testing import Gateway


@pytest.fixture(scope="session")
def ropeway_gateway() -> Iterator[Gateway]:
    """Run a gateway that all tests of a session share; do not stop it."""
    with running_gateway() as gateway:
        yield gateway


@pytest.fixture
def ropeway_topic() -> str:
    """Make a topic name that no other test has; sending to it creates the topic."""
    return f"topic-{uuid.uuid4().hex[:12]}"
