"""Topics go to Delta and back, each row once, on the Spark that its builds fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import builds
from tests.spark_session import QUICK_JVM

if TYPE_CHECKING:
    from tests.spark_session import Topics

HERE = Path(__file__).parent
TIMEOUT_S = 400
BUILDS = ("io/delta", "spark-avro")

pytestmark = [pytest.mark.slow, pytest.mark.jvm]


@pytest.mark.timeout(1500)
def test_rows_are_once_in_delta_and_back_where_the_driver_was_killed(
    ropeway_topics: Topics, tmp_path: Path
) -> None:
    packages = builds.python_packages(HERE / "lakes.txt")
    jars = builds.classpath(HERE / "lakes.xml").split(":")
    source, sink = ropeway_topics.make(2), ropeway_topics.make(2)
    words = [
        *(sys.executable, "-m", "tests.system.lake_job", ropeway_topics.name_server),
        *(source, sink, str(tmp_path)),
        ",".join(jar for jar in jars if any(one in jar for one in BUILDS)),
    ]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*words, *more],
            cwd=HERE.parents[1],
            # They stand before what is installed.
            env={
                **{
                    name: os.environ[name]
                    for name in os.environ.keys() - {"SPARK_HOME"}
                },
                "PYTHONPATH": str(packages),
                "SPARK_SUBMIT_OPTS": QUICK_JVM,
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )

    for queue in range(2):
        ropeway_topics.send(source, ['{"item":"tea","price":3}'] * 5, queue=queue)
    killed = run("--killed")
    assert killed.returncode == -9, killed.stderr
    # Delta has committed the batch, and the checkpoint has not.
    assert len(list((tmp_path / "copied" / "_delta_log").glob("*.json"))) == 1
    assert not list((tmp_path / "copied.at" / "commits").glob("0"))
    ropeway_topics.send(source, ['{"item":"hat","price":9,"colour":"red"}'] * 2)
    done = run()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    rows = [["hat", 9, "red"]] * 2 + [["tea", 3, None]] * 10
    before, after = found.pop("files")
    assert before > after == 1
    first, again = found.pop("archives")
    assert " rows=12 " in first, first
    assert " rows=" not in again.replace(" rows=0 ", ""), again
    assert found == {
        "spark": "4.2.1",
        "copied": rows,
        "avro": [["tea", 3, "none"]],
        "archived": 12,
    }
    assert sorted(json.loads(one)["item"] for one in ropeway_topics.read(sink)) == (
        ["hat"] * 2 + ["tea"] * 10
    )
