"""A client without a JVM reads and writes topics by a server of Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import builds
from tests.starts import started_again
from tests.system.process import ForeignProcess, free_ports

if TYPE_CHECKING:
    from tests.spark_session import Topics

HERE = Path(__file__).parent
TIMEOUT_S = 300
OPENED = ("java.nio", "java.lang", "java.lang.invoke", "java.util", "sun.nio.ch")
"""What Spark's scripts open for Arrow."""
SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


@started_again
def started(stack: ExitStack, folder: Path, options: str, port: int) -> None:
    """A server that has said that it is there."""
    home = os.environ["SPARK_HOME"]
    settings = {**SETTINGS, "spark.connect.grpc.binding.port": str(port)}
    process = ForeignProcess(
        "connect",
        [
            *("java", "-Xmx1g", *options.split()),
            *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED),
            # As a driver has it, whose classes are mapped.
            *("-cp", f"{home}/conf/:{home}/jars/*"),
            *("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *(f"--conf={name}={value}" for name, value in settings.items()),
            "spark-internal",
        ],
        folder,
        {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",
        },
        shares=False,
    )
    stack.callback(process.kill)
    process.wait_until(lambda: "server started at" in process.log.read_text())


@pytest.mark.timeout(900)
def test_a_client_reads_and_writes_topics_and_copies_a_stream(
    ropeway_topics: Topics, tmp_path: Path, spark_classes: str
) -> None:
    packages = builds.python_packages(HERE / "connect.txt")
    source, sink = ropeway_topics.make(2), ropeway_topics.make(2)
    ropeway_topics.send(source, ["a", "b", "c"])
    (port,) = free_ports(1)
    with ExitStack() as stack:
        started(stack, tmp_path, spark_classes, port)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.system.connect_job"),
                *(f"sc://127.0.0.1:{port}", ropeway_topics.name_server),
                *(source, sink, str(tmp_path / "checkpoint")),
            ],
            cwd=HERE.parents[1],
            env={**os.environ, "PYTHONPATH": str(packages)},
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["a", "b", "c"]
    assert sorted(ropeway_topics.read(sink)) == ["a", "a", "b", "b", "c", "c"]
