"""Which tests share a process."""

from pathlib import Path

import pytest

from tests.distribution import (
    CLIENTS,
    CLIENTS_ON_PULSAR,
    FIRST,
    GRPC_CLIENTS,
    GUARDED,
    LOST_NODES,
    NODES_ON_PULSAR,
    PULSAR,
    ROCKETMQ,
    SPARK,
    ZOOKEEPER,
    group,
)

ALONE = {
    "system/test_absence.py": "has a Pulsar of its own, which forgets",
    "system/test_geo.py": "makes a second cluster known to Pulsar",
}
"""Files that ask for a shared server and have it to themselves, and why."""


def test_tests_of_one_slow_server_are_together() -> None:
    consuming = "tests/clients/test_consuming.py"
    assert group(f"{consuming}::test_a[pulsar-Java 5.5.0]") == CLIENTS_ON_PULSAR
    restarts = "tests/clients/test_restarts.py"
    assert group(f"{restarts}::test_a[kill-pulsar-Go 2.1.2]") == CLIENTS_ON_PULSAR
    for name in ("test_query", "test_options"):
        assert group(f"tests/clients/{name}.py::test_a[embedded-Go 2.1.2]") == CLIENTS
    assert group("tests/clients/test_grpc_types.py::test_a[embedded-x]") == GRPC_CLIENTS
    assert group("tests/storage/pulsar/test_log.py::test_a") == PULSAR
    assert group("tests/system/test_native_clients.py::test_a") == PULSAR
    assert group("tests/ropeway/client/test_admin.py::test_a[rocketmq]") == ROCKETMQ
    assert group("tests/ropeway/streams/test_job.py::test_a") == SPARK
    assert group("tests/ropeway/spark/test_source.py::test_a[rocketmq]") == SPARK
    assert group("tests/system/test_slaves.py::test_a") == NODES_ON_PULSAR
    for name in ("test_moving", "test_spark_failover"):
        assert group(f"tests/system/{name}.py::test_a") == NODES_ON_PULSAR
    for name in ("system/test_names", "system/test_zombie", "deploy/test_rollout"):
        assert group(f"tests/{name}.py::test_a") == LOST_NODES
    for name in ("test_attacks", "test_attacks_forged"):
        assert group(f"tests/system/{name}.py::test_a[workers]") == GUARDED
    assert group("tests/routing/zookeeper/test_local_copy.py::test_a") == ZOOKEEPER
    assert group("tests/system/test_routes.py::test_a") == ZOOKEEPER


def test_the_rest_goes_by_files() -> None:
    consuming = "tests/clients/test_consuming.py"
    assert group(f"{consuming}::test_a[embedded-Java 5.5.0]") == consuming
    alone = "tests/system/test_pulsar_cluster.py"
    assert group(f"{alone}::test_a") == alone


def test_what_comes_first_is_there() -> None:
    root = Path(__file__).parents[1]
    assert all((root / name).is_file() for name in FIRST if name.startswith("tests/"))


@pytest.mark.parametrize("asked", ["spark: SparkSession", "pulsar: Pulsar"])
def test_who_asks_for_a_slow_server_shares_it(asked: str) -> None:
    """A file that was renamed would start one of its own: 10 s of CPU and more."""
    root = Path(__file__).parent
    paths = [
        file.relative_to(root).as_posix()
        for file in root.rglob("test_*.py")
        if asked in file.read_text()
    ]
    alone = {one for one in paths if group(f"tests/{one}::test_a") == f"tests/{one}"}
    assert alone - ALONE.keys() == {Path(__file__).name}
