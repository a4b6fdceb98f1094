"""`ropeway message dlq`: messages that a group could not handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ropeway.client import Admin, admin_dlq, admin_groups
from ropeway.gateway.cli.clients import ask, confirm, run, yes_option
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_argument, topic_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_rows, progress
from ropeway.gateway.cli.times import time_text

if TYPE_CHECKING:
    from ropeway.client.admin_dlq import DeadLetter
    from ropeway.gateway.cli.target import Target

_GROUP = "ropeway-cli"


@click.group(epilog=example("ropeway message dlq list kitchen"))
def dlq() -> None:
    """Look at messages that a group could not handle, and give them back."""


@dlq.command("list", epilog=example("ropeway message dlq list kitchen"))
@group_argument
@click.option("--all", "everything", is_flag=True, help="Also those replayed before.")
@click.option("--count", type=click.IntRange(1), default=100, show_default=True)
@cluster_options
@json_option
def list_(
    group: str, everything: bool, count: int, cluster: Target, as_json: bool
) -> None:
    """Print the dead letters of GROUP that were not replayed, oldest first."""

    async def look(admin: Admin) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        letters = admin_dlq.dead_letters(admin, group, replayed_too=everything)
        async for letter in letters:
            rows.append(_row(letter))
            if len(rows) == count:
                break
        if not rows:
            # One that was deleted may have left some.
            await admin_groups.known(admin, group)
        return rows

    print_rows(ask(cluster, look), as_json=as_json)


def _row(letter: DeadLetter) -> dict[str, Any]:
    message = letter.message
    return {
        "topic": letter.topic,
        "msg_id": message.msg_id,
        "offset_msg_id": message.offset_msg_id,
        "broker": message.queue.broker_name,
        "offset": message.queue_offset,
        "attempts": message.reconsume_times,
        "tag": message.tags or "",
        "keys": " ".join(message.keys),
        "dead_since": time_text(message.store_ms),
        "replayed": letter.is_replayed,
    }


@dlq.command(
    epilog=example(
        "ropeway message dlq replay kitchen --yes",
        "ropeway message dlq replay kitchen --to-topic orders --count 1",
    )
)
@group_argument
@click.option(
    "--to-topic",
    help="To this topic, for all groups that consume it; else to the group alone.",
    shell_complete=topic_names,
)
@click.option("--count", type=click.IntRange(1), help="Stop after so many.")
@yes_option
@cluster_options
@json_option
def replay(
    group: str,
    to_topic: str | None,
    count: int | None,
    yes: bool,
    cluster: Target,
    as_json: bool,
) -> None:
    """Replay GROUP's dead letters, each with all its retries.

    They stay where they are, and count as replayed. A crash may have the last one
    replayed twice.
    """

    async def work() -> list[dict[str, Any]]:
        rows = []
        async with cluster.admin() as admin, cluster.producer(_GROUP) as sender:
            total = await admin_dlq.count(admin, group)
            total = total if count is None else min(total, count)
            if not total:
                await admin_groups.known(admin, group)
            else:
                where = f"to topic {to_topic}" if to_topic else "to the group"
                confirm(f"Give {total} messages of {group} back {where}?", yes=yes)
            with progress("replaying", total) as step:
                async for letter, sent in admin_dlq.replay(
                    admin, sender, group, to_topic=to_topic, most=count
                ):
                    rows.append({**_row(letter), "new_msg_id": sent.msg_id})
                    step()
        return rows

    rows = run(cluster, work())
    if as_json:
        print_rows(rows, as_json=True)
    else:
        click.echo(f"{len(rows)} messages of group {group} replayed")
