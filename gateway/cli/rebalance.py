"""`ropeway route rebalance`: spreads queues over the brokers that run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

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
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, MisusedError
from ropeway.gateway.cli.output import print_json, print_rows, progress
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
@click.option("--dry-run", is_flag=True, help="Only print which queues would move.")
@click.option(
    "--by-load",
    is_flag=True,
    help="Measure what is sent for 10 s, and move one queue where that helps.",
)
@cluster_options
@json_option
def rebalance(
    topic: str | None,
    everything: bool,
    dry_run: bool,
    by_load: bool,
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
        _by_load(topic, dry_run=dry_run, cluster=cluster, as_json=as_json)
        return
    moved: list[Move] = []
    refused: list[str] = []

    async def work() -> None:
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

    try:
        run(cluster, work())
    finally:
        # What has moved stays so, whatever came after it.
        _print(moved, as_json=as_json)
    if refused:
        raise CannotError("; ".join(refused))


def _by_load(
    topic: str | None, *, dry_run: bool, cluster: Target, as_json: bool
) -> None:
    async def work(admin: Admin) -> LoadMove | None:
        names = [topic] if topic is not None else await users_topics(admin)
        planned = await admin_loads.plan(admin, names)
        if dry_run:
            return planned[0] if planned else None
        return await admin_loads.rebalance(admin, planned)

    one = ask(cluster, work)
    rows = [] if one is None else [{**row(one.move), **_why(one)}]
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
    rows = [row(one) for one in moved]
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, as_json=False)


def row(one: Move) -> dict[str, Any]:
    """A queue that moves, for people."""
    return {
        "topic": one.topic,
        "partition": one.partition,
        "from": f"{one.giver}/{one.from_id}",
        "to": f"{one.taker}/{one.to_id}",
        "took_ms": "" if one.took_ms is None else one.took_ms,
    }
