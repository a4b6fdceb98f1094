"""Which tests one process must run: those that share a server that is slow to start.

Source: pytest-xdist's own groups need a mark on each test, and names of tests that
pytest 9.2 no longer gives it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.runner import runtestprotocol

from tests.chance import shuffle

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

CLIENTS_ON_PULSAR = "real clients on Pulsar"
CLIENTS = "real clients on the embedded log"
GRPC_CLIENTS = "real clients of gRPC on the embedded log"
PULSAR = "Pulsar"
NODES_ON_PULSAR = "nodes on Pulsar"
LOST_NODES = "nodes on Pulsar that go and come back"
ZOOKEEPER = "ZooKeeper"
ROCKETMQ = "our client on RocketMQ"
SPARK = "Spark"
GUARDED = "nodes that guard"
CONTAINERS = "containers"
WHOLE_TREE = "the whole tree"
SHARING = {
    CLIENTS_ON_PULSAR: r"clients/.*[\[-]pulsar-",
    GRPC_CLIENTS: r"clients/test_grpc\w*\.py",
    # Each of those takes as long as all others.
    CLIENTS: r"clients/test_(?!consuming|migration|restarts)\w+\.py",
    ROCKETMQ: r"ropeway/client/.*\[rocketmq",
    SPARK: (
        r"(ropeway/spark/test_(source|pipelines|tier|compaction_job|outages|tutorial|query_start"
        r"|kafka_habits)"
        r"|ropeway/streams/test_(job|mirror_job|checkpoint)"
        r"|examples/test_examples|gateway/cli/test_(streams|pipeline))\.py"
    ),
    PULSAR: (
        r"(storage/pulsar/|gateway/cli/test_offload\.py"
        r"|simulation/test_pulsar(_admin)?\.py"
        r"|system/test_(cluster|native_\w+|pulsar_client)\.py)"
    ),
    NODES_ON_PULSAR: (
        r"system/test_(timers|trimming|slaves|mqadmin_cluster|moving|failover_lite|namespaces|doctor|rebalance|drain|moved_clients|rolling_upgrade|spark_failover)\.py"
    ),
    LOST_NODES: (
        r"(system/test_(balancing|deletion|deployment_page|how_to_cluster|moved_retries"
        r"|migration_brokers|names|scale|tutorial_pulsar|zombie)"
        r"|deploy/test_rollout)\.py"
    ),
    ZOOKEEPER: (
        r"(routing/zookeeper/|system/test_(routes|shared_users)\.py"
        r"|simulation/test_zookeeper\.py)"
    ),
    GUARDED: r"system/test_(attacks\w*|spark_contexts)\.py",
    CONTAINERS: r"system/test_(containers|first_steps)\.py",
    WHOLE_TREE: r"test_(architecture|laws|looking)\.py",
}
"""What tests share a server, as the beginning of their ids below tests/; or, of the
last, all files of Python, parsed."""
ENDED = [
    *("agents", "start_server", "shared_server", "there", "secured"),
    *("pulsar", "newer_pulsar", "counting_pulsar", "mortal_pulsar", "zookeeper"),
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
    "tests/system/test_killed_queries.py",
    NODES_ON_PULSAR,
    "tests/system/test_pulsar_cluster.py",
    LOST_NODES,
    GUARDED,
    "tests/benchmarks/test_hostile.py",
    "tests/system/test_differential_grpc.py",
    "tests/system/test_differential.py",
    "tests/clients/test_migration.py",
    "tests/clients/test_restarts.py",
    "tests/clients/test_consuming.py",
    CLIENTS,
    GRPC_CLIENTS,
    # Behind what makes its images meanwhile.
    CONTAINERS,
    "tests/benchmarks/test_smoke.py",
    "tests/system/test_spark_cluster.py",
    ZOOKEEPER,
    # The longest of the quick tier.
    "tests/power/test_power.py",
    "tests/simulation/test_simulation.py",
    "tests/storage/tiered/test_log.py",
    "tests/gateway/cli/test_client.py",
    "tests/gateway/cli/test_secured.py",
    "tests/gateway/cli/test_serve.py",
    "tests/gateway/node/test_schedule.py",
    "tests/gateway/test_quotas.py",
]
"""What takes longest, so that nothing long is left at the end."""
REPORTED_S = 0.1
"""A set-up or a teardown that takes so long may be among the slowest of a run."""


_ANY = re.compile(
    "|".join(f"(?P<s{at}>{one})" for at, one in enumerate(SHARING.values()))
)
_NAMES = {f"s{at}": name for at, name in enumerate(SHARING)}
_ROOT = Path(__file__).parent


@cache
def group(nodeid: str) -> str:
    """What runs in one process, one test after the other: mostly a file."""
    found = _ANY.match(nodeid.removeprefix("tests/"))
    return _NAMES[found.lastgroup or ""] if found else nodeid.partition("::")[0]


def _rank(item: pytest.Item) -> int:
    name = group(item.nodeid)
    if name in FIRST:
        return FIRST.index(name)
    # What looks at the whole tree takes seconds.
    return len(FIRST) + (item.path.parent != _ROOT)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = shuffle(items, lambda item: group(item.nodeid))
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


def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> bool | None:
    """Report a test once to the process that gives out the work, if all is well.

    The start of a test, its set-up and its teardown are messages as well, each of which
    costs both sides: half a millisecond of CPU for each of thousands of tests.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > REPORTED_S:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return Scheduler(config, log)
