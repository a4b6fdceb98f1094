"""`ropeway topic trim`: a topic's oldest messages are given up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from ropeway.client import admin_trims
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import topic_argument
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.topics import TrimmedQueue
from ropeway.gateway.cli.times import past_ms

if TYPE_CHECKING:
    from ropeway.client import Admin
    from ropeway.client.admin_trims import Trimmed
    from ropeway.gateway.cli.target import Target


def _moment(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    return admin_trims.EVERYTHING_MS if text == "latest" else past_ms(text, "latest, ")


@click.command(
    epilog=example(
        "ropeway topic trim orders --to 7d --dry-run",
        "ropeway topic trim orders --to latest --yes",
        "ropeway topic trim orders --queue 3 --to-offset 1200",
    )
)
@topic_argument
@click.option(
    "--to",
    "to_ms",
    callback=_moment,
    metavar="latest|TIME|DURATION",
    help="What was stored before, or longer ago; with latest, all messages.",
)
@click.option(
    "--to-offset", type=click.IntRange(0), help="What is below it; with --queue."
)
@click.option(
    "--queue",
    "queue_id",
    type=click.IntRange(0),
    help="Only this queue of each broker.",
)
@destructive_options
@cluster_options
@json_option(list[TrimmedQueue])
def trim(
    topic: str,
    to_ms: int | None,
    to_offset: int | None,
    queue_id: int | None,
    consent: Consent,
    cluster: Target,
    as_json: bool,
) -> None:
    """Give up the oldest messages of TOPIC: nobody reads them any more.

    Groups that have not read them go on behind, and their lag is less by as much.
    """
    if (to_ms is None) == (to_offset is None):
        raise MisusedError("give one of --to and --to-offset")
    if to_offset is not None and queue_id is None:
        raise MisusedError("--to-offset is one queue's; give --queue")

    async def work(admin: Admin, *, dry_run: bool) -> list[Trimmed]:
        return await admin_trims.trim(
            admin,
            topic,
            time_ms=admin_trims.EVERYTHING_MS if to_ms is None else to_ms,
            queue_id=queue_id,
            offset=to_offset,
            dry_run=dry_run,
        )

    found = ask(cluster, partial(work, dry_run=True))
    count = sum(one.after - one.before for one in found)
    if count and not consent.dry_run:
        consent.to(f"delete {count} messages of topic {topic}")
        found = ask(cluster, partial(work, dry_run=False))
    rows = [
        TrimmedQueue(
            topic=one.queue.topic,
            broker=one.queue.broker_name,
            queue_id=one.queue.queue_id,
            before=one.before,
            after=one.after,
            trimmed=one.after - one.before,
        )
        for one in found
    ]
    print_rows(rows, as_json=as_json)
