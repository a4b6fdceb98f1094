"""`ropeway streams`: jobs of files, on Spark."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ropeway.client import Admin, admin_clients, admin_groups
from ropeway.gateway.cli.main import main
from tests.ropeway.client.scenario import PATIENT
from tests.waiting import until

if TYPE_CHECKING:
    from click.testing import Result
    from pyspark.sql import SparkSession

    from tests.spark_session import Topics

EXAMPLES = Path(__file__).parents[3] / "examples"


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, ["streams", *words])


def test_a_job_is_described_and_drawn() -> None:
    job = str(EXAMPLES / "word_count.py")
    shown = invoke("describe", job)
    assert shown.exit_code == 0
    assert "wordCount-ROPEWAY-COUNT-1 <- wordCount-ROPEWAY-KEY-BY-1" in shown.stdout
    assert invoke("describe", job, "--draw").stdout.startswith("flowchart LR\n")


def test_a_file_that_is_no_job_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_text("builder = None")
    for words in (["describe"], ["run", "--checkpoint", str(tmp_path)]):
        refused = invoke(*words, str(path))
        assert refused.exit_code == 2
        assert "variable 'builder' of" in refused.stderr


@pytest.mark.slow
@pytest.mark.jvm
def test_a_job_runs_goes_around_bad_records_and_is_watched(
    spark: SparkSession,
    ropeway_topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The session is that of the whole run.
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    source, sink, dead = (ropeway_topics.make(1) for _ in range(3))
    job = tmp_path / "job.py"
    job.write_text(
        "from ropeway.streams import StreamBuilder\n"
        "builder = StreamBuilder('halves')\n"
        f"builder.source({source!r}).map(int).sink({sink!r})\n"
    )
    ropeway_topics.send(source, ["1", "two", "3"])

    def run(*words: str) -> Result:
        return invoke(
            *("run", str(job), "--checkpoint", str(tmp_path / "checkpoint")),
            *("--name-server", ropeway_topics.name_server, "--once", *words),
            *("--option", "startingOffsets=earliest"),
        )

    failed = run()
    assert failed.exit_code == 1
    assert failed.stderr.strip().endswith(
        "step 'halves-ROPEWAY-MAP-1' failed at 'two': ValueError: invalid literal "
        "for int() with base 10: 'two'"
    )
    done = run("--dead-letters", dead, "--watch")
    assert done.exit_code == 0, done.output
    assert "halves-ROPEWAY-SINK-1 batch=0 rows=3 " in done.stdout
    assert ropeway_topics.read(sink) == ["1", "3"]
    assert ropeway_topics.read(dead) == ["two"]
    assert "topic 'none' does not exist" in run("--dead-letters", "none").stderr


async def running(name_server: str, group: str) -> list[tuple[str, int, int]]:
    """Each query that a group's consumers run, with rows in and out of its batches."""
    found = []
    async with Admin(name_server, config=PATIENT) as admin:
        joined = await admin_groups.membership(admin, group)
        for one in admin_clients.members(group, joined):
            info = await admin_clients.consumption(admin, one)
            assert info is not None
            for query in info.queries:
                rows = [batch.rows_in for batch in query.batches]
                out = [batch.rows_out or 0 for batch in query.batches]
                found.append((query.name, sum(rows), sum(out)))
    return [one for one in found if one == ("copies-ROPEWAY-SINK-1", 1, 1)]


@pytest.mark.slow
@pytest.mark.jvm
def test_ctrl_c_ends_a_running_job_without_a_trace(
    spark: SparkSession,
    ropeway_topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # The session is that of the whole run; of its queries none is left.
    monkeypatch.setattr(
        type(spark), "stop", lambda _: [one.stop() for one in spark.streams.active]
    )
    source, sink = ropeway_topics.make(1), ropeway_topics.make(1)
    ropeway_topics.send(source, ["1"])
    job = tmp_path / "job.py"
    job.write_text(
        "from ropeway.streams import StreamBuilder\n"
        "builder = StreamBuilder('copies')\n"
        f"builder.source({source!r}).sink({sink!r})\n"
    )
    group = f"q-{sink}"
    commands = {
        0: ("streams", "run", str(job), "--option", f"group={group}"),
        130: (
            *("pipeline", "sql", f"select value from `{source}`"),
            *("--topic", source, "--into", sink),
        ),
    }

    def interrupt(rows: int) -> None:
        until(lambda: len(ropeway_topics.read(sink)) == rows)
        if rows == 1:
            until(lambda: asyncio.run(running(ropeway_topics.name_server, group)))
        os.kill(os.getpid(), signal.SIGINT)

    for number, (code, words) in enumerate(commands.items(), 1):
        given = [*words, "--name-server", ropeway_topics.name_server]
        given += ["--checkpoint", str(tmp_path / f"checkpoint-{number}")]
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(interrupt, number)
            ended = CliRunner().invoke(main, given)
        told.result()
        assert ended.exit_code == code, ended.output
        assert not spark.streams.active
        # What Java was asked meanwhile is not told of.
        assert caplog.records == []
        assert "Traceback" not in ended.output
