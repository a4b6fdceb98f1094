"""`ropeway migrate status`: where each topic stands, and what is next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import admin_inventory, admin_migration_status
from ropeway.client.admin_cut_over import AT_SOURCE
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import RETURNED, SENT_BACK
from ropeway.gateway.cli.clients import run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.migration_checks import topics_of_users
from ropeway.gateway.cli.mirrors import topics_at_source
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.migration import TopicStanding
from ropeway.gateway.cli.target import of_context
from ropeway.gateway.cli.times import Seconds

if TYPE_CHECKING:
    from ropeway.client.admin_migration_status import Standing
    from ropeway.gateway.cli.target import Target


@click.command(
    epilog=example(
        "ropeway migrate status --source rocketmq",
        "ropeway migrate status --source rocketmq orders --json",
    )
)
@topics_at_source("to move from", required=False)
@click.option(
    "--look",
    "look_s",
    type=Seconds(0.1),
    default=2.0,
    show_default=True,
    help="How long to look how fast mirrors copy.",
)
@cluster_options
@json_option(list[TopicStanding])
def status(
    topics: tuple[str, ...], source: str, look_s: float, cluster: Target, as_json: bool
) -> None:
    """Tell of each TOPIC at the source where it stands; of all, if none is named.

    Nothing is changed.
    """
    from_ = of_context(source)

    async def work() -> list[TopicStanding]:
        async with from_.admin() as there, cluster.admin() as here:
            named = topics or [
                one.topic for one in topics_of_users(await admin_inventory.read(there))
            ]
            found = await admin_migration_status.standings(
                there, here, Mirror(there, here), named, look_s
            )
            return [_row(one) for one in found]

    print_rows(run(cluster, work()), as_json=as_json)


def _row(one: Standing) -> TopicStanding:
    return TopicStanding(
        topic=one.topic,
        stage=one.stage,
        to_copy=one.missing,
        behind_s=one.behind_s,
        per_s=one.per_s,
        left_s=one.left_s,
        next=one.why or _next(one),
    )


def _next(one: Standing) -> str:
    if one.stage in (admin_migration_status.FINISHED, RETURNED):
        return ""
    if one.stage == SENT_BACK:
        return "ropeway migrate rollback"
    if one.stage == admin_migration_status.MOVED:
        return "ropeway migrate finish"
    falls_behind = bool(one.missing) and one.left_s is None
    if falls_behind or one.stage == AT_SOURCE:
        return "ropeway migrate mirror"
    return "ropeway migrate cut-over"
