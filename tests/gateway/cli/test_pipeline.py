"""`ropeway pipeline`: what users of files and SQL get without a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from ropeway.gateway.cli.main import main
from tests.gateway.cli.secured import NOBODY, ROOT, WAYS, secured
from tests.ropeway.spark.tiers import TOPIC, Sent, make

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark_session import Topics


@pytest.mark.slow
@pytest.mark.jvm
def test_a_table_goes_to_a_topic_through_sql_and_into_files(
    spark: SparkSession,
    ropeway_topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The session is that of the whole run.
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    topic, chosen = ropeway_topics.make(1), ropeway_topics.make(1)
    prices = tmp_path / "prices.json"
    prices.write_text('{"item":"tea","price":3}\n{"item":"gold","price":3000}\n')

    def run(*words: str, code: int = 0) -> str:
        given = ["pipeline", *words, "--name-server", ropeway_topics.name_server]
        result = CliRunner().invoke(main, given)
        assert result.exit_code == code, result.output
        return result.output

    words = ("load", str(prices), "none", "--format", "json")
    missing = run(*words, code=1)
    assert missing == (
        "Error: topic 'none' does not exist; create it with: ropeway topic create none "
        "or --create\n"
    )
    made = f"made-{topic}"
    run("load", str(prices), made, "--format", "json", "--create")
    assert len(ropeway_topics.read(made)) == 2
    table = ("load", str(prices), topic, "--format", "json")
    assert "allowed: item, price" in run(*table, "--key", "name", code=2)
    run(*table, "--key", "item")
    run(
        *("sql", f"select value from `{topic}` where key = 'gold'", "--once"),
        *("--topic", topic, "--into", chosen, "--checkpoint", str(tmp_path / "sql")),
    )
    assert ropeway_topics.read(chosen) == ['{"item":"gold","price":3000}']
    lake = tmp_path / "lake"
    shown = run(
        *("archive", chosen, str(lake), "--checkpoint", str(tmp_path / "at")),
        *("--once", "--watch"),
    )
    assert f"archive-{chosen} batch=0 rows=1 " in shown
    assert spark.read.parquet(str(lake)).count() == 1
    (day,) = lake.glob("day=*")
    assert list(day.glob("*.parquet"))


@pytest.mark.slow
@pytest.mark.jvm
def test_a_tier_is_compacted_to_a_directory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    tier, target = (tmp_path / "broker-0").as_uri(), (tmp_path / "made").as_uri()
    make(tier, [Sent(str(at), "", f"k{at % 2}") for at in range(6)])
    words = ["pipeline", "compact", tier, TOPIC, target]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "partition 7: 2 messages" in result.output
    assert len([*(tmp_path / "made" / TOPIC / "7").iterdir()]) == 3
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 1
    assert "allowed: a target that has nothing of the topic" in again.output


SIGNING = {
    "accessKey": "ROPEWAY_ACCESS_KEY",
    "secretKey": "ROPEWAY_SECRET_KEY",
    "token": "ROPEWAY_TOKEN",
}


@pytest.mark.slow
@pytest.mark.jvm
@pytest.mark.parametrize("way", WAYS)
def test_jobs_sign_in_where_rights_are_checked_and_tls_is_wanted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    prices = tmp_path / "prices.json"
    prices.write_text('{"item":"tea","price":3}\n')
    job = tmp_path / "job.py"
    job.write_text(
        "from ropeway.streams import StreamBuilder\n"
        'builder = StreamBuilder("copies")\n'
        'builder.source("prices").sink("copied")\n'
    )
    (tmp_path / "node").mkdir()
    with secured(tmp_path / "node") as node:
        signed = {who: node.environment(who, way) for who in (ROOT, NOBODY)}

        def run(*words: str, who: str = ROOT) -> Result:
            return CliRunner().invoke(main, words, env=signed[who])

        for topic in ("prices", "chosen", "copied"):
            assert run("topic", "create", topic, "--queues", "1").exit_code == 0
        jobs = (
            ("pipeline", "load", str(prices), "prices", "--format", "json"),
            (
                *("pipeline", "sql", "select value from prices", "--topic", "prices"),
                *("--into", "chosen", "--once", "--checkpoint", str(tmp_path / "sql")),
            ),
            (
                *("pipeline", "archive", "chosen", str(tmp_path / "lake"), "--once"),
                *("--checkpoint", str(tmp_path / "archive")),
            ),
            (
                *("streams", "run", str(job), "--once"),
                *("--option", "startingOffsets=earliest"),
                *("--checkpoint", str(tmp_path / "streams")),
            ),
        )
        for words in jobs:
            refused = run(*words, who=NOBODY)
            assert refused.exit_code == 6, (words, refused.output)
            assert "not allowed" in refused.stderr
        for words in jobs:
            done = run(*words)
            assert done.exit_code == 0, (words, done.output)
        assert spark.read.parquet(str(tmp_path / "lake")).count() == 1
        read = run("consume", "copied", "--count", "1")
        assert read.stdout == '{"item":"tea","price":3}\n'
        said = {
            option: signed[ROOT][name]
            for option, name in SIGNING.items()
            if name in signed[ROOT]
        }
        table = (
            spark.read.format("ropeway")
            .options(**said, nameServer=node.address, topic="prices", tls="true")
            .option("tlsCa", signed[ROOT]["ROPEWAY_TLS_CA"])
            .load()
        )
        if said:
            assert table.count() == 1
    secrets = [said[name].encode() for name in said.keys() & {"secretKey", "token"}]
    plan: Any = table._jdf.queryExecution().toString()
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    kept = [one.read_bytes() for one in files if tmp_path / "node" not in one.parents]
    assert kept
    assert not [
        text for text in (str(plan).encode(), *kept) for one in secrets if one in text
    ]
