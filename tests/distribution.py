"""Which tests one process must run: those that share a server that is slow to start.

Source: pytest-xdist's own groups need a mark on each test, and names of tests that
pytest 9.2 no longer gives it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

CLIENTS_ON_PULSAR = "real clients on Pulsar"
PULSAR = "Pulsar"
ROCKETMQ = "our client on RocketMQ"
ON_PULSAR = re.compile(
    r"tests/(storage/pulsar/|system/test_(cluster|native_\w+)\.py)",
)
ENDED = ["start_server", "shared_server", "pulsar", "zookeeper"]
"""Fixtures of whole runs that end with a group, each before what it stands on."""
FIRST = [
    "tests/test_checks.py",
    "tests/system/test_failover.py",
    CLIENTS_ON_PULSAR,
    PULSAR,
    ROCKETMQ,
    "tests/clients/test_restarts.py",
    "tests/clients/test_consuming.py",
    "tests/benchmarks/test_smoke.py",
]
"""What takes minutes, so that nothing long is left at the end."""


def group(nodeid: str) -> str:
    """What runs in one process, one test after the other: mostly a file."""
    path, _, test = nodeid.partition("::")
    if path.startswith("tests/clients/") and re.search(r"[\[-]pulsar-", test):
        return CLIENTS_ON_PULSAR
    if path.startswith("tests/ropeway/client/") and "[rocketmq" in test:
        return ROCKETMQ
    if ON_PULSAR.match(path):
        return PULSAR
    return path


def _rank(item: pytest.Item) -> int:
    name = group(item.nodeid)
    if name in FIRST:
        return FIRST.index(name)
    # What looks at the whole tree takes seconds.
    return len(FIRST) + (item.path.parent != Path(__file__).parent)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the servers of a group behind its last test: idle ones are not free."""
    if nextitem is None or group(nextitem.nodeid) == group(item.nodeid):
        return
    assert isinstance(item, pytest.Function)
    for name in ENDED:
        found = item.session._fixturemanager.getfixturedefs(name, item)
        for definition in found or ():
            definition.finish(item._request)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return Scheduler(config, log)
