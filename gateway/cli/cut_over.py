"""`ropeway migrate cut-over`: mirrors take over from the source."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ropeway.client.admin_cut_over import SETTLE_S, CutOver
from ropeway.client.admin_groups import known
from ropeway.client.admin_mirrors import Mirror
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.mirrors import groups_at_source, topics_at_source
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.migration import MigratedTopic
from ropeway.gateway.cli.target import of_context
from ropeway.gateway.cli.times import Seconds

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target


@click.command(
    "cut-over",
    epilog=example(
        "ropeway migrate cut-over --source rocketmq orders --group kitchen",
        "ropeway migrate cut-over --source rocketmq orders payments --settle 60",
    ),
)
@topics_at_source("to take over from")
@groups_at_source
@click.option(
    "--settle",
    "settle_s",
    type=Seconds(),
    default=SETTLE_S,
    show_default=True,
    help="How long producers have to come here: longer than clients keep routes; and "
    "how long groups have to read what is left at the source.",
)
@cluster_options
@json_option(list[MigratedTopic])
def cut_over(
    topics: tuple[str, ...],
    source: str,
    groups: tuple[str, ...],
    settle_s: float,
    cluster: Target,
    as_json: bool,
) -> None:
    """Have messages of each TOPIC be stored here, and its consumers follow.

    First what producers send here is sent on to the source. When all have come, they
    wait for a moment, and from then on messages are stored here. Whatever fails or is
    killed, the same command goes on.
    """
    from_ = of_context(source)

    def say(step: str) -> None:
        click.echo(step, err=True)

    async def work() -> list[MigratedTopic]:
        async with from_.admin() as there, cluster.admin() as here:
            job = CutOver(there, here, Mirror(there, here), settle_s)
            for group in groups:
                await known(here, group)
            left = await job.not_moved(topics)
            began = time.monotonic()
            paused_ms = None
            if left:
                moved = await job.move(left, groups, say)
                paused_ms = round(moved.paused_s * 1000)
                if moved.left:
                    say(
                        f"{moved.left:,} messages came at the source after that, from "
                        "producers that had not looked at routes; they are there alone"
                    )
            took_ms = round((time.monotonic() - began) * 1000)
            return [
                MigratedTopic(topic=topic, took_ms=took_ms, paused_ms=paused_ms)
                if topic in left
                else MigratedTopic(topic=topic, took_ms=None, paused_ms=None)
                for topic in topics
            ]

    print_rows(run(cluster, work()), as_json=as_json)
