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
NODES_ON_PULSAR = "nodes on Pulsar"
ROCKETMQ = "our client on RocketMQ"
SPARK = "Spark"
ON_PULSAR = re.compile(
    r"tests/(storage/pulsar/|system/test_(cluster|native_\w+)\.py)",
)
NODES = re.compile(r"tests/system/test_(timers|slaves|mqadmin_cluster)\.py")
ON_SPARK = re.compile(
    r"tests/(ropeway/spark/test_(source|pipelines|tier|compacting)"
    r"|ropeway/streams/test_(job\w*|mirroring|checkpoint)"
    r"|examples/test_examples|gateway/cli/test_(streams|pipeline))\.py"
)
ENDED = [
    *("agents", "start_server", "shared_server", "pulsar", "zookeeper"),
    *("spark", "ropeway_topics"),
]
"""Fixtures of whole runs that end with a group, each before what it stands on."""
FIRST = [
    "tests/test_checks.py",
    "tests/system/test_failover.py",
    CLIENTS_ON_PULSAR,
    PULSAR,
    ROCKETMQ,
    SPARK,
    "tests/system/test_killed_job.py",
    NODES_ON_PULSAR,
    "tests/system/test_pulsar_cluster.py",
    "tests/system/test_differential_grpc.py",
    "tests/system/test_differential.py",
    "tests/system/test_pulsar_client.py",
    "tests/clients/test_restarts.py",
    "tests/clients/test_consuming.py",
    "tests/benchmarks/test_smoke.py",
    "tests/system/test_spark_cluster.py",
]
"""What takes minutes, so that nothing long is left at the end."""


def group(nodeid: str) -> str:
    """What runs in one process, one test after the other: mostly a file."""
    path, _, test = nodeid.partition("::")
    if path.startswith("tests/clients/") and re.search(r"[\[-]pulsar-", test):
        return CLIENTS_ON_PULSAR
    if path.startswith("tests/ropeway/client/") and "[rocketmq" in test:
        return ROCKETMQ
    if ON_SPARK.match(path):
        return SPARK
    if ON_PULSAR.match(path):
        return PULSAR
    if NODES.match(path):
        return NODES_ON_PULSAR
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
    if nextitem is not None and group(nextitem.nodeid) != group(item.nodeid):
        end_servers(item)


def end_servers(item: pytest.Item) -> None:
    """Stop what whole runs share; it is started again for whoever asks for it."""
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
