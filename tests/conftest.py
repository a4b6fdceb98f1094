"""Plugins that all tests share."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.compatibility",
    "tests.clients.fixtures",
    "tests.system.fixtures",
]

# The same examples each time, however slow the machine is.
settings.register_profile(
    "ropeway",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ropeway")

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what looks at the whole tree first: it takes seconds, the rest minutes."""
    items.sort(key=lambda item: item.path.parent != HERE)
