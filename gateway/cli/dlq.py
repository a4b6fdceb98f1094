"""`ropeway message dlq`: messages that a group could not handle."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from ropeway.client import Admin, admin_dlq, admin_groups
from ropeway.gateway.cli.clients import ask, run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_argument, topic_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_rows, progress
from ropeway.gateway.cli.rows import Planned
from ropeway.gateway.cli.rows.messages import DeadLetterRow
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
@json_option(list[DeadLetterRow])
def list_(
    group: str, everything: bool, count: int, cluster: Target, as_json: bool
) -> None:
    """Print the dead letters of GROUP that were not replayed, oldest first."""
    rows = ask(
        cluster,
        lambda admin: letter_rows(admin, group, count, replayed_too=everything),
    )
    print_rows(rows, as_json=as_json)


async def letter_rows(
    admin: Admin, group: str, count: int, *, replayed_too: bool = False
) -> list[DeadLetterRow]:
    """Up to `count` dead letters of a group, the oldest first.

    Raises:
        AdminError: There is no such group.
        RemotingError: A broker cannot be reached, or refused.
    """
    rows: list[DeadLetterRow] = []
    letters = admin_dlq.dead_letters(admin, group, replayed_too=replayed_too)
    async for letter in letters:
        rows.append(letter_row(letter))
        if len(rows) == count:
            break
    if not rows:
        # One that was deleted may have left some.
        await admin_groups.known(admin, group)
    return rows


def letter_row(letter: DeadLetter, new_msg_id: str | None = None) -> DeadLetterRow:
    """A dead letter; with the id of the message that it was replayed as."""
    message = letter.message
    return DeadLetterRow(
        topic=letter.topic,
        msg_id=message.msg_id,
        offset_msg_id=message.offset_msg_id,
        broker=message.queue.broker_name,
        offset=message.queue_offset,
        attempts=message.reconsume_times,
        tag=message.tags or "",
        keys=" ".join(message.keys),
        dead_since=time_text(message.store_ms),
        replayed=letter.is_replayed,
        new_msg_id=UNSET if new_msg_id is None else new_msg_id,
    )


@dlq.command(
    epilog=example(
        "ropeway message dlq replay kitchen --yes",
        "ropeway message dlq replay kitchen --to-topic orders --count 1",
        "ropeway message dlq replay kitchen --rate 50 --yes",
    )
)
@group_argument
@click.option(
    "--to-topic",
    help="To this topic, for all groups that consume it; else to the group alone.",
    shell_complete=topic_names,
)
@click.option("--count", type=click.IntRange(1), help="Stop after so many.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    help="At most so many a second; else as fast as they are taken.",
)
@destructive_options
@cluster_options
@json_option(list[DeadLetterRow], Planned)
def replay(
    group: str,
    to_topic: str | None,
    count: int | None,
    rate: float | None,
    consent: Consent,
    cluster: Target,
    as_json: bool,
) -> None:
    """Replay GROUP's dead letters, each with all its retries.

    They stay where they are, and count as replayed. A crash may have the last one
    replayed twice.
    """

    async def look(admin: Admin) -> int:
        total = await admin_dlq.count(admin, group)
        if not total:
            await admin_groups.known(admin, group)
        return total if count is None else min(total, count)

    total = ask(cluster, look)
    where = f"to topic {to_topic}" if to_topic else "to the group"
    action = f"replay {total} messages of group {group} {where}"
    if (total or consent.dry_run) and not consent.to(action, as_json=as_json):
        return

    async def work() -> list[DeadLetterRow]:
        rows: list[DeadLetterRow] = []
        begun_s = time.monotonic()
        async with cluster.admin() as admin, cluster.producer(_GROUP) as sender:
            with progress("replaying", total) as step:
                async for letter, sent in admin_dlq.replay(
                    admin, sender, group, to_topic=to_topic, most=count
                ):
                    rows.append(letter_row(letter, sent.msg_id))
                    step()
                    if rate is not None and len(rows) < total:
                        due_s = begun_s + len(rows) / rate
                        await asyncio.sleep(due_s - time.monotonic())
        return rows

    rows = run(cluster, work())
    if as_json:
        print_rows(rows, as_json=True)
    else:
        click.echo(f"{len(rows)} messages of group {group} replayed")
