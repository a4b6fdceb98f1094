"""`ropeway offset export` and `import`: a group's offsets as a file."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import click

from ropeway.client import Admin, admin_groups, admin_offsets
from ropeway.gateway.cli import seek_file
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_argument, topic_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.rows.groups import OffsetMove
from ropeway.gateway.cli.seek_file import Place

if TYPE_CHECKING:
    from ropeway.client import QueueLag
    from ropeway.client.admin_offsets import Moved
    from ropeway.gateway.cli.target import Target


@click.command(
    epilog=example(
        "ropeway offset export kitchen > kitchen.tsv",
        "ropeway offset export kitchen orders --json",
    )
)
@group_argument
@click.argument("topic", required=False, shell_complete=topic_names)
@cluster_options
@json_option(list[Place])
def export(group: str, topic: str | None, cluster: Target, as_json: bool) -> None:
    """Print GROUP's committed offsets, in TOPIC or everywhere, as a file to import."""

    async def look(admin: Admin) -> list[QueueLag]:
        await admin_groups.known(admin, group)
        return await admin_offsets.progress(admin, group, topic)

    places = [
        Place(lag.queue.topic, lag.queue.broker_name, lag.queue.queue_id, lag.committed)
        for lag in ask(cluster, look)
        if lag.committed >= 0
    ]
    if as_json:
        print_json(places)
        return
    for line in seek_file.lines(places):
        click.echo(line)


@click.command(
    "import",
    epilog=example(
        "ropeway offset import kitchen - --dry-run < kitchen.tsv",
        "ropeway offset import kitchen - --yes < kitchen.tsv",
    ),
)
@group_argument
@click.argument("file", type=click.File("rb"))
@destructive_options
@cluster_options
@json_option(list[OffsetMove])
def import_(
    group: str, file: IO[bytes], consent: Consent, cluster: Target, as_json: bool
) -> None:
    """Move GROUP to the offsets in FILE, or in the standard input for -.

    Nothing is moved unless every queue of the file is there and has its offset.
    """
    name = getattr(file, "name", "standard input")
    places = seek_file.read(file.read(), name)
    if not places:
        raise MisusedError(f"{name} has no offsets")
    wanted = {one.queue: one.offset for one in places}
    moved = ask(cluster, lambda admin: admin_offsets.planned(admin, group, wanted))
    changed = sum(one.before != one.after for one in moved)
    if changed and not consent.dry_run:
        consent.to(f"move group {group} in {changed} of {len(moved)} queues")
    if not consent.dry_run:
        # Also where nothing moves: the group may have no offset yet.
        moved = ask(cluster, lambda admin: admin_offsets.place(admin, group, wanted))
    print_moved(moved, as_json=as_json)


def print_moved(moved: list[Moved], *, as_json: bool) -> None:
    """Print where a group was, and where it goes on."""
    print_rows(moved_rows(moved), as_json=as_json)


def moved_rows(moved: list[Moved]) -> list[OffsetMove]:
    """Where a group was, and where it goes on."""
    return [
        OffsetMove(
            topic=one.queue.topic,
            broker=one.queue.broker_name,
            queue_id=one.queue.queue_id,
            before=one.before,
            after=one.after,
        )
        for one in moved
    ]
