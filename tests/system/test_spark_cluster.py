"""A job runs on a cluster of Spark's: a master and two workers, all processes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages import DOCS, blocks
from tests.starts import started_again
from tests.system.process import ForeignProcess, free_ports

if TYPE_CHECKING:
    from tests.spark_session import Topics

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 500
JOB = """
from ropeway.streams import StreamBuilder

builder = StreamBuilder("clustered")
builder.source({source!r}).key_by(len).count().sink({sink!r})
"""

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


@started_again
def started(
    stack: ExitStack, folder: Path, options: str, name: str, *words: str
) -> ForeignProcess:
    """A part of the cluster, that has said that it is there."""
    kind = "master.Master" if name == "master" else "worker.Worker"
    home = os.environ["SPARK_HOME"]
    process = ForeignProcess(
        name,
        [
            *("java", "-Xmx256m", *options.split()),
            # As a driver has it, whose classes are mapped.
            *("-cp", f"{home}/conf/:{home}/jars/*"),
            *(f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"),
            *("--webui-port", "0", *words),
        ],
        folder,
        {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": home,
            # As Spark's own scripts say it, where no build folder does.
            "SPARK_SCALA_VERSION": "2.13",
        },
        shares=False,
    )
    stack.callback(process.kill)
    sign = "I have been elected" if name == "master" else "registered with master"
    process.wait_until(lambda: sign in process.log.read_text())
    return process


def python_without_ropeway(folder: Path) -> Path:
    """A Python that has what Ropeway needs, and Ropeway itself not."""
    venv.create(folder, with_pip=False)
    there = Path(sysconfig.get_path("purelib"))
    packages = folder / "packages"
    packages.mkdir()
    for one in there.iterdir():
        if "ropeway" not in one.name and one.suffix != ".pth":
            (packages / one.name).symlink_to(one)
    into = folder / there.relative_to(sys.prefix)
    (into / "packages.pth").write_text(str(packages))
    python = folder / "bin" / "python"
    found = "from importlib.util import find_spec as find; "
    told = "print(find('pyspark') is not None, find('ropeway') is not None)"
    done = subprocess.run(
        [python, "-c", found + told], cwd=folder, check=True, capture_output=True
    )
    assert done.stdout.split() == [b"True", b"False"]
    return python


def wheel_of_ropeway(folder: Path) -> Path:
    """A folder with a wheel of Ropeway, as a package index has it."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q"]
    copy = folder / "source"
    shutil.copytree(
        ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(".*", "tests", "docs")
    )
    wheels = folder / "wheels"
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "-w", str(wheels), str(copy)],
        check=True,
        capture_output=True,
    )
    return wheels


def shown(**places: str) -> str:
    """The page's lines that take Ropeway to executors, with these places instead."""
    (block,) = (
        one for one in blocks(DOCS / "spark.md") if "spark.archives=" in one.text
    )
    text = block.text
    for there, here in places.items():
        assert there in text
        text = text.replace(there, here)
    return text.rstrip()


@pytest.mark.timeout(900)
def test_both_workers_run_a_part_of_a_job(
    ropeway_topics: Topics, tmp_path: Path, spark_classes: str
) -> None:
    source, sink = ropeway_topics.make(2), ropeway_topics.make(2)
    for queue in range(2):
        ropeway_topics.send(source, ["a", "bb", "c"], queue=queue)
    job = tmp_path / "job.py"
    job.write_text(JOB.format(source=source, sink=sink))
    python = python_without_ropeway(tmp_path / "python")
    port, *_ = free_ports(1)
    with ExitStack() as stack:
        url = f"spark://127.0.0.1:{port}"
        started(stack, tmp_path, spark_classes, "master", "--port", str(port))
        workers = [
            started(
                *(stack, tmp_path, spark_classes, name),
                *("--cores", "1", "--memory", "700m"),
                *("--work-dir", str(tmp_path / name), url),
            )
            for name in ("worker-1", "worker-2")
        ]
        settings = {
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.executor.extraJavaOptions": spark_classes,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            # Neither begins before the other is there.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.cores.max": "2",
        }
        more = [
            *("--name-server", ropeway_topics.name_server, "--once"),
            *("--option", "startingOffsets=earliest"),
            *(f"--set={name}={value}" for name, value in settings.items()),
        ]
        lines = shown(
            **{"spark://host:7077": url, "s3a://bucket/job": str(tmp_path / "at")}
        )
        done = subprocess.run(
            ["bash", "-ec", f"{lines} {shlex.join(more)}"],
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                # Where pip finds Ropeway.
                "PIP_NO_INDEX": "1",
                "PIP_FIND_LINKS": str(wheel_of_ropeway(tmp_path)),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": str(python),
                # As if it were installed for that Python on the driver's machine.
                "PYTHONPATH": str(ROOT),
            },
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr
        for worker in workers:
            assert "Asked to launch executor" in worker.log.read_text()
    assert sorted(ropeway_topics.read(sink)) == ["1", "1", "2", "2", "3", "4"]
