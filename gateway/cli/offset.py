"""`ropeway offset`: shows and resets consumer groups' offsets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ropeway.client import admin_groups, admin_offsets
from ropeway.client.admin_offsets import EARLIEST_MS, LATEST_MS
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_argument, topic_argument, topic_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, MisusedError
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.groups import GroupOffset, OffsetMove
from ropeway.gateway.cli.seeks import export, import_, print_moved
from ropeway.gateway.cli.times import duration_ms, time_ms, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.client import Admin, QueueLag
    from ropeway.client.admin_offsets import Moved
    from ropeway.gateway.cli.target import Target

queue_option = click.option(
    "--queue",
    "queue_id",
    type=click.IntRange(0),
    help="Only this queue of each broker.",
)


@click.group(epilog=example("ropeway offset show kitchen orders"))
def offset() -> None:
    """Show, reset, export and import consumer groups' offsets."""


for each in (export, import_):
    offset.add_command(each)


@offset.command(
    epilog=example("ropeway offset show kitchen", "ropeway offset show kitchen orders")
)
@group_argument
@click.argument("topic", required=False, shell_complete=topic_names)
@cluster_options
@json_option(list[GroupOffset])
def show(group: str, topic: str | None, cluster: Target, as_json: bool) -> None:
    """Print GROUP's offsets and lag in each queue: of TOPIC, or of all its topics."""

    async def look(admin: Admin) -> list[QueueLag]:
        await admin_groups.known(admin, group)
        return await admin_offsets.progress(admin, group, topic)

    lags = ask(cluster, look)
    print_rows(offset_rows(lags), as_json=as_json)


def offset_rows(lags: Iterable[QueueLag]) -> list[GroupOffset]:
    """Say how far a group is in queues."""
    return [
        GroupOffset(
            topic=lag.queue.topic,
            broker=lag.queue.broker_name,
            queue_id=lag.queue.queue_id,
            committed=lag.committed,
            pulled=lag.pulled,
            end=lag.end,
            lag=lag.lag,
            done_until=time_text(lag.done_ms) if lag.done_ms else "",
        )
        for lag in lags
    ]


def _moment(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    return None if text is None else moment_ms(text)


def moment_ms(text: str) -> int:
    """Read `earliest`, `latest` or a moment, in milliseconds since 1970.

    Raises:
        BadParameter: It is none of them.
    """
    words = {"earliest": EARLIEST_MS, "latest": LATEST_MS}
    return words[text] if text in words else time_ms(text, "earliest, latest, ")


@offset.command(
    epilog=example(
        "ropeway offset reset kitchen orders --to latest",
        "ropeway offset reset kitchen orders --to 2026-11-22T08:00:00 --yes",
        "ropeway offset reset kitchen orders --queue 3 --to-offset 1200",
    )
)
@group_argument
@topic_argument
@click.option(
    "--to", "to_ms", callback=_moment, metavar="earliest|latest|TIME", help="To there."
)
@click.option(
    "--to-offset", type=click.IntRange(0), help="To this offset; with --queue."
)
@queue_option
@destructive_options
@cluster_options
@json_option(list[OffsetMove])
def reset(
    group: str,
    topic: str,
    to_ms: int | None,
    to_offset: int | None,
    queue_id: int | None,
    consent: Consent,
    cluster: Target,
    as_json: bool,
) -> None:
    """Reset GROUP's committed offsets in TOPIC: messages are redelivered or skipped.

    Connected consumers follow within seconds, others when they next start.
    """
    if (to_ms is None) == (to_offset is None):
        raise MisusedError("give one of --to and --to-offset")
    if to_offset is not None and queue_id is None:
        raise MisusedError("--to-offset is one queue's; give --queue")
    if not consent.dry_run:
        consent.to(f"move group {group} in topic {topic}")

    async def work(admin: Admin) -> list[Moved]:
        return await admin_offsets.reset(
            admin,
            group,
            topic,
            time_ms=EARLIEST_MS if to_ms is None else to_ms,
            queue_id=queue_id,
            offset=to_offset,
            dry_run=consent.dry_run,
        )

    _print(ask(cluster, work), as_json=as_json)


def _span(_: click.Context, __: click.Parameter, text: str) -> int:
    return duration_ms(text)


@offset.command(epilog=example("ropeway offset rewind kitchen orders --by 2h --yes"))
@group_argument
@topic_argument
@click.option(
    "--by",
    "by_ms",
    callback=_span,
    required=True,
    metavar="DURATION",
    help="How far back: 90s, 15m, 2h, 7d.",
)
@destructive_options
@cluster_options
@json_option(list[OffsetMove])
def rewind(
    group: str,
    topic: str,
    by_ms: int,
    consent: Consent,
    cluster: Target,
    as_json: bool,
) -> None:
    """Rewind GROUP by DURATION in TOPIC, so that it reads those messages again.

    In queues where the group is further behind, its offset stays.
    """
    if not consent.dry_run:
        consent.to(f"move group {group} back in topic {topic}")
    to_ms = max(0, time.time_ns() // 1_000_000 - by_ms)
    moved = ask(
        cluster,
        lambda admin: admin_offsets.reset(
            admin,
            group,
            topic,
            time_ms=to_ms,
            only_back=True,
            dry_run=consent.dry_run,
        ),
    )
    _print(moved, as_json=as_json)


def _print(moved: list[Moved], *, as_json: bool) -> None:
    if not moved:
        raise CannotError("no queue was moved")
    print_moved(moved, as_json=as_json)
