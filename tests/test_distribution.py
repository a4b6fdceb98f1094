"""Which tests share a process."""

from pathlib import Path

from tests.distribution import (
    CLIENTS_ON_PULSAR,
    FIRST,
    GUARDED,
    NODES_ON_PULSAR,
    PULSAR,
    ROCKETMQ,
    SPARK,
    ZOOKEEPER,
    group,
)


def test_tests_of_one_slow_server_are_together() -> None:
    consuming = "tests/clients/test_consuming.py"
    assert group(f"{consuming}::test_a[pulsar-Java 5.5.0]") == CLIENTS_ON_PULSAR
    restarts = "tests/clients/test_restarts.py"
    assert group(f"{restarts}::test_a[kill-pulsar-Go 2.1.2]") == CLIENTS_ON_PULSAR
    assert group("tests/storage/pulsar/test_log.py::test_a") == PULSAR
    assert group("tests/system/test_native_clients.py::test_a") == PULSAR
    assert group("tests/ropeway/client/test_admin.py::test_a[rocketmq]") == ROCKETMQ
    assert group("tests/ropeway/streams/test_job.py::test_a") == SPARK
    assert group("tests/ropeway/spark/test_source.py::test_a[rocketmq]") == SPARK
    assert group("tests/system/test_slaves.py::test_a") == NODES_ON_PULSAR
    assert group("tests/system/test_moving.py::test_a") == NODES_ON_PULSAR
    for name in ("test_attacks", "test_attacks_forged"):
        assert group(f"tests/system/{name}.py::test_a[workers]") == GUARDED
    assert group("tests/routing/zookeeper/test_local_copy.py::test_a") == ZOOKEEPER


def test_the_rest_goes_by_files() -> None:
    consuming = "tests/clients/test_consuming.py"
    assert group(f"{consuming}::test_a[embedded-Java 5.5.0]") == consuming
    alone = "tests/system/test_pulsar_cluster.py"
    assert group(f"{alone}::test_a") == alone


def test_what_comes_first_is_there() -> None:
    root = Path(__file__).parents[1]
    assert all((root / name).is_file() for name in FIRST if name.startswith("tests/"))
