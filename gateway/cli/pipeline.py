"""`ropeway pipeline`: topics to files, tables to topics, topics to topics by SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.gateway.cli.cluster_options import cluster_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.cli.spark_jobs import (
    checkpoint_option,
    create_option,
    finish,
    master_option,
    once_option,
    reach,
    session,
    set_option,
    source_option,
    watch_option,
)

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target

_ARCHIVE = (
    "ropeway pipeline archive orders ./lake/orders --checkpoint ./lake/orders.at --once"
)
_LOAD = "ropeway pipeline load ./lake/prices prices --key item"
_SQL = (
    "ropeway pipeline sql \"select value, 'big' tag from orders "
    'where length(value) > 99" --topic orders --into big-orders --checkpoint ./big.at'
)
_COMPACT = (
    "ropeway pipeline compact s3://bucket/ropeway/broker-0 prices file:///srv/prices"
)


@click.group(epilog=example(_ARCHIVE))
def pipeline() -> None:
    """Ready-made pipelines on Spark."""


@pipeline.command(epilog=example(_ARCHIVE))
@click.argument("topic")
@click.argument("directory")
@click.option(
    "--format",
    "file_format",
    default="parquet",
    show_default=True,
    help="Of the files: parquet, orc, json, or, with Spark 4.2, delta.",
)
@click.option(
    "--every",
    type=click.Choice(["day", "hour"]),
    default="day",
    show_default=True,
    help="A folder for each.",
)
@checkpoint_option
@master_option
@set_option
@source_option
@once_option
@watch_option
@cluster_options
def archive(
    topic: str,
    directory: str,
    file_format: str,
    every: str,
    checkpoint: str,
    master: str,
    settings: dict[str, str],
    options: dict[str, str],
    once: bool,
    is_watched: bool,
    cluster: Target,
) -> None:
    """Write the messages of TOPIC to files in DIRECTORY, each once."""
    source = reach(cluster, [topic], options)
    with session(f"archive-{topic}", master, settings, file_format) as spark:
        from ropeway.spark import pipelines
        from ropeway.spark.query_reports import reported

        running = pipelines.archive(
            spark,
            topic,
            directory,
            checkpoint=checkpoint,
            options=source,
            file_format=file_format,
            every=every,
            once=once,
        )
        finish(
            running.wait,
            lambda: [running.query],
            is_watched=is_watched,
            told=reported(spark, source),
        )


@pipeline.command(epilog=example(_LOAD))
@click.argument("path")
@click.argument("topic")
@click.option(
    "--format",
    "file_format",
    default="parquet",
    show_default=True,
    help="Of what PATH has: parquet, csv, json, delta, or any other of Spark's.",
)
@click.option("--key", metavar="COLUMN", help="The column that becomes the key.")
@create_option
@master_option
@set_option
@source_option
@cluster_options
def load(
    path: str,
    topic: str,
    file_format: str,
    key: str | None,
    creates: bool,
    master: str,
    settings: dict[str, str],
    options: dict[str, str],
    cluster: Target,
) -> None:
    """Send the rows of the table at PATH to TOPIC: all, or none.

    Rows become JSON, unless their columns are a message's, `value` among them.
    """
    source = reach(cluster, [topic], options, into=topic, creates=creates)
    with session(f"load-{topic}", master, settings, file_format) as spark:
        from ropeway.spark import pipelines

        table = spark.read.format(file_format).load(path)
        pipelines.load(table, topic, options=source, key=key)
        click.echo(f"sent: {path} to topic {topic}")


@pipeline.command(epilog=example(_SQL))
@click.argument("statement")
@click.option(
    "--topic", "topics", multiple=True, required=True, help="A topic that it names."
)
@click.option("--into", required=True, metavar="TOPIC", help="Where rows go.")
@create_option
@checkpoint_option
@master_option
@set_option
@source_option
@once_option
@watch_option
@cluster_options
def sql(
    statement: str,
    topics: tuple[str, ...],
    into: str,
    creates: bool,
    checkpoint: str,
    master: str,
    settings: dict[str, str],
    options: dict[str, str],
    once: bool,
    is_watched: bool,
    cluster: Target,
) -> None:
    """Send what the SQL STATEMENT makes of topics to another one.

    Each topic is a table of its own name. Rows become JSON, unless their
    columns are a message's, `value` among them.
    """
    source = reach(cluster, [*topics, into], options, into=into, creates=creates)
    with session(f"sql-{into}", master, settings) as spark:
        from ropeway.spark import pipelines
        from ropeway.spark.query_reports import reported

        running = pipelines.transform(
            spark,
            statement,
            topics,
            into,
            checkpoint=checkpoint,
            options=source,
            once=once,
        )
        finish(
            running.wait,
            lambda: [running.query],
            is_watched=is_watched,
            told=reported(spark, source),
        )


@pipeline.command(epilog=example(_COMPACT))
@click.argument("tier")
@click.argument("topic")
@click.argument("target")
@click.option(
    "--tombstone-hours",
    type=click.FloatRange(min=0),
    default=24.0,
    show_default=True,
    help="How long messages stay that delete a key.",
)
@click.option(
    "--keyless-hours",
    type=click.FloatRange(min=0),
    help="How long messages without a key stay, from their storing on; else for ever.",
)
@master_option
@set_option
def compact(
    tier: str,
    topic: str,
    target: str,
    tombstone_hours: float,
    keyless_hours: float | None,
    master: str,
    settings: dict[str, str],
) -> None:
    """Write the last message of each key of TOPIC in the TIER of a broker to TARGET.

    TIER and TARGET are URLs. The files are those of compacted topics.
    """
    with session(f"compact-{topic}", master, settings) as spark:
        from ropeway.spark import compaction_job
        from ropeway.spark.segments import TierError

        try:
            found = compaction_job.compact(
                spark,
                tier,
                topic,
                target,
                tombstone_ms=int(tombstone_hours * compaction_job.HOUR_MS),
                keyless_ms=None
                if keyless_hours is None
                else int(keyless_hours * compaction_job.HOUR_MS),
            )
        except TierError as error:
            raise CannotError(str(error)) from error
        for one in found:
            click.echo(
                f"partition {one.number}: {one.records} messages, {one.bytes} bytes, "
                f"of those before offset {one.clean_end}"
            )
