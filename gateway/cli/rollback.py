"""`ropeway migrate rollback`: topics that were cut over go back to the source."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ropeway.client.admin_cut_over import SETTLE_S
from ropeway.client.admin_groups import known
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import Rollback
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.mirrors import topics_at_source
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.rows.migration import (
    RolledBack,
    RolledBackTopic,
    TranslatedOffset,
)
from ropeway.gateway.cli.target import of_context
from ropeway.gateway.cli.times import Seconds

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target


@click.command(
    epilog=example(
        "ropeway migrate rollback --source rocketmq orders --group kitchen",
        "ropeway migrate rollback --source rocketmq orders payments --settle 60",
    )
)
@topics_at_source("to go back to")
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    help="Have GROUP, which exists there, go on there where it does here; repeatable.",
)
@click.option(
    "--settle",
    "settle_s",
    type=Seconds(),
    default=SETTLE_S,
    show_default=True,
    help="How long groups have to read what is left here.",
)
@cluster_options
@json_option(RolledBack)
def rollback(
    topics: tuple[str, ...],
    source: str,
    groups: tuple[str, ...],
    settle_s: float,
    cluster: Target,
    as_json: bool,
) -> None:
    """Have messages of each TOPIC, which was cut over, be stored at the source again.

    What was sent here since is sent there, with offsets of the source's own. Whatever
    fails or is killed, the same command goes on; there is no way back after `finish`.
    """
    from_ = of_context(source)

    def say(step: str) -> None:
        click.echo(step, err=True)

    async def work() -> RolledBack:
        async with from_.admin() as there, cluster.admin() as here:
            job = Rollback(there, here, Mirror(there, here), settle_s)
            for group in groups:
                await known(there, group)
            began = time.monotonic()
            done = await job.roll_back(topics, groups, say)
            took_ms = round((time.monotonic() - began) * 1000)
            return RolledBack(
                topics=[
                    RolledBackTopic(
                        topic=topic,
                        sent=done.sent[topic],
                        waits=done.waiting[topic],
                        took_ms=took_ms,
                        paused_ms=round(done.paused_s * 1000),
                    )
                    for topic in topics
                ],
                translated=[
                    TranslatedOffset(
                        group=one.group,
                        topic=one.pair.target.topic,
                        queue_id=one.pair.target.queue_id,
                        at_target=one.here,
                        at_source=one.at_source,
                    )
                    for one in done.placed
                ],
            )

    found = run(cluster, work())
    if as_json:
        print_json(found)
    else:
        print_rows(found.topics, as_json=False)
        if found.translated:
            click.echo()
            print_rows(found.translated, as_json=False)
    if waits := sum(one.waits for one in found.topics):
        say(
            f"{waits:,} messages wait here, for a time or the end of a transaction; "
            "run the same command when they are due"
        )
