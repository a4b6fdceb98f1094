"""`ropeway streams`: run stream jobs on Spark, and look at what they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ropeway.gateway.cli.cluster_options import cluster_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.spark_jobs import (
    checkpoint_option,
    finish,
    master_option,
    once_option,
    reach,
    session,
    set_option,
    source_option,
    spark_needed,
    watch_option,
)
from ropeway.gateway.cli.streams_top import top
from ropeway.gateway.fast_imports import killable

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target

_job_argument = click.argument(
    "job", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)


@click.group(
    epilog=example("ropeway streams run examples/word_count.py --checkpoint ./words")
)
def streams() -> None:
    """Run stream jobs: Python files with a StreamBuilder named `builder`."""


@streams.command(
    epilog=example(
        "ropeway streams run examples/word_count.py --checkpoint ./words --watch"
    )
)
@_job_argument
@checkpoint_option
@master_option
@set_option
@source_option
@click.option(
    "--dead-letters",
    metavar="TOPIC",
    help="Where records go that a step fails at, instead of ending the job.",
)
@click.option(
    "--mirror",
    "is_mirrored",
    is_flag=True,
    help="Keep state and offsets in compacted topics, too, and begin from those.",
)
@once_option
@watch_option
@cluster_options
def run(
    job: Path,
    checkpoint: str,
    master: str,
    settings: dict[str, str],
    options: dict[str, str],
    dead_letters: str | None,
    is_mirrored: bool,
    once: bool,
    is_watched: bool,
    cluster: Target,
) -> None:
    """Run the job of the file JOB until Ctrl-C, or until a step fails."""
    with spark_needed(), killable():
        from ropeway.spark.query_reports import reported
        from ropeway.streams import RopewayStream, TopologyError
        from ropeway.streams.jobfile import load_job
    try:
        topology = load_job(job)
    except TopologyError as error:
        raise MisusedError(str(error)) from error
    topics = {node.arguments.get("topic") for node in topology.nodes}
    source = reach(cluster, filter(None, topics), options, must_exist=False)
    with session(topology.job_id, master, settings) as spark:
        spark.sparkContext.setLogLevel("ERROR")
        stream = RopewayStream(
            topology,
            spark,
            source,
            checkpoint=checkpoint,
            dead_letters=dead_letters,
            is_mirrored=is_mirrored,
        )
        try:
            stream.start(available_now=once)
            finish(
                stream.wait,
                lambda: stream.queries,
                is_watched=is_watched,
                told=reported(spark, source),
            )
        except KeyboardInterrupt:
            spark.sparkContext.setLogLevel("OFF")
            click.echo("stopping; the job goes on from its checkpoint", err=True)
        finally:
            stream.stop()


@streams.command(epilog=example("ropeway streams describe examples/word_count.py"))
@_job_argument
@click.option("--draw", is_flag=True, help="Draw it, in the words of Mermaid.")
def describe(job: Path, draw: bool) -> None:
    """Print the topology of the file JOB: each step, and what Spark does for it."""
    with spark_needed(), killable():
        from ropeway.streams import TopologyError
        from ropeway.streams.jobfile import load_job
    try:
        topology = load_job(job)
    except TopologyError as error:
        raise MisusedError(str(error)) from error
    click.echo(topology.draw() if draw else topology.describe())


streams.add_command(top)
