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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what looks at the whole tree first, and say what one process must run."""
    items.sort(key=lambda item: item.path.parent != HERE)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    """Tests of one group run one after the other, on the servers that they share."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and callspec.params.get("start_server") == "pulsar":
        return "real clients on Pulsar"
    if "pulsar" in getattr(item, "fixturenames", ()):
        return "Pulsar"
    return str(item.path.relative_to(HERE))
