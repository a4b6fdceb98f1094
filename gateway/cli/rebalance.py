"""`ropeway route rebalance`: spreads queues over the brokers that run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import structs

from ropeway.client import (
    Admin,
    ConnectionFailedError,
    RemotingError,
    admin_loads,
    admin_moves,
)
from ropeway.gateway.cli.clients import ask, run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import topic_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, MisusedError
from ropeway.gateway.cli.output import print_rows, progress
from ropeway.gateway.cli.rows.topics import MovedQueue
from ropeway.gateway.cli.topic_views import users_topics

if TYPE_CHECKING:
    from ropeway.client.admin_loads import LoadMove
    from ropeway.client.admin_moves import Move
    from ropeway.gateway.cli.target import Target


@click.command(
    epilog=example(
        "ropeway route rebalance orders --dry-run",
        "ropeway route rebalance --all",
        "ropeway route rebalance --all --by-load --dry-run",
    )
)
@click.argument("topic", required=False, shell_complete=topic_names)
@click.option("--all", "everything", is_flag=True, help="All topics of users.")
@click.option(
    "--by-load",
    is_flag=True,
    help="Measure what is sent for 10 s, and move one queue where that helps.",
)
@destructive_options
@cluster_options
@json_option(list[MovedQueue])
def rebalance(
    topic: str | None,
    everything: bool,
    by_load: bool,
    consent: Consent,
    cluster: Target,
    as_json: bool,
) -> None:
    """Move queues of TOPIC so that all brokers have as many, or one more.

    It takes the fewest moves, one after the other. Messages stay where they are, so a
    move takes a moment. Only on Pulsar: nobody else can open an embedded log.
    """
    if (topic is None) != everything:
        raise MisusedError("give a TOPIC or --all, and not both")
    if by_load:
        _by_load(topic, consent, cluster=cluster, as_json=as_json)
        return
    if consent.dry_run:
        _spread(topic, cluster, dry_run=True, as_json=as_json)
        return
    what = f"topic {topic}" if topic else "all topics"
    consent.to(f"move queues of {what} between brokers")
    _spread(topic, cluster, dry_run=False, as_json=as_json)


def _spread(
    topic: str | None, cluster: Target, *, dry_run: bool, as_json: bool
) -> None:
    moved: list[Move] = []
    refused: list[str] = []
    try:
        run(cluster, _move(topic, moved, refused, dry_run=dry_run, cluster=cluster))
    finally:
        # What has moved stays so, whatever came after it.
        _print(moved, as_json=as_json)
    if refused:
        raise CannotError("; ".join(refused))
    if not moved and not as_json:
        click.echo("no queue moves: each broker has as many as it should")


async def _move(
    topic: str | None,
    moved: list[Move],
    refused: list[str],
    *,
    dry_run: bool,
    cluster: Target,
) -> None:
    """Move queues of a topic, or of all, and note what moved and what could not."""
    async with cluster.admin() as admin:
        names = [topic] if topic is not None else await users_topics(admin)
        with progress("moving queues") as step:
            for name in names:
                try:
                    async for one in admin_moves.rebalance(
                        admin, name, dry_run=dry_run
                    ):
                        moved.append(one)
                        step()
                except ConnectionFailedError:
                    raise
                except RemotingError as error:
                    if topic is not None:
                        raise
                    refused.append(f"{name}: {error}")


def _by_load(
    topic: str | None, consent: Consent, *, cluster: Target, as_json: bool
) -> None:
    async def plan(admin: Admin) -> list[LoadMove]:
        names = [topic] if topic is not None else await users_topics(admin)
        return await admin_loads.plan(admin, names)

    planned = ask(cluster, plan)
    one = planned[0] if planned else None
    if one is not None and not consent.dry_run:
        consent.to(f"move a queue of topic {one.move.topic} to broker {one.move.taker}")
        one = ask(cluster, lambda admin: admin_loads.rebalance(admin, planned))
    rows = [] if one is None else [structs.replace(row(one.move), **_why(one))]
    if rows or as_json:
        print_rows(rows, as_json=as_json)
    else:
        click.echo("no queue moves: loads are even enough, or no move would help")


def _why(one: LoadMove) -> dict[str, float]:
    return {
        "queue_per_s": round(one.per_s, 1),
        "from_per_s": round(one.giver_per_s, 1),
        "to_per_s": round(one.taker_per_s, 1),
        "average_per_s": round(one.average_per_s, 1),
    }


def _print(moved: list[Move], *, as_json: bool) -> None:
    print_rows([row(one) for one in moved], as_json=as_json)


def row(one: Move) -> MovedQueue:
    """A queue that moves."""
    return MovedQueue(
        topic=one.topic,
        partition=one.partition,
        from_=f"{one.giver}/{one.from_id}",
        to=f"{one.taker}/{one.to_id}",
        took_ms=one.took_ms,
    )
