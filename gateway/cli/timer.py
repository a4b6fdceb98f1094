"""`ropeway timer`: lists and cancels messages that wait for their delivery time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import admin_delays
from ropeway.gateway.cli.clients import ask, run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError, RefusedError
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.messages import TimedMessage
from ropeway.gateway.cli.times import time_text
from ropeway.gateway.wire import recall
from ropeway.gateway.wire.errors import MessageError

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target

_GROUP = "ropeway-cli"


count_option = click.option(
    "--count",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="The most that each broker tells, and the most of each delay level.",
)


@click.group(epilog=example("ropeway timer list --topic orders"))
def timer() -> None:
    """List and cancel messages that wait for their delivery time."""


@timer.command(
    "list",
    epilog=example(
        "ropeway timer list --topic orders", "ropeway timer list --count 100000 --json"
    ),
)
@click.option("--topic", help="Only messages for this topic.")
@count_option
@cluster_options
@json_option(list[TimedMessage])
def list_(topic: str | None, count: int, cluster: Target, as_json: bool) -> None:
    """Print the messages that wait for a delivery time or at a delay level.

    About the soonest first. Retries wait at delay levels, for %RETRY% and their group;
    whoever may not read the brokers' own topic gets those with a delivery time alone.
    """
    timed = ask(cluster, lambda admin: admin.waiting(topic, max_messages=count))
    try:
        delayed = ask(
            cluster,
            lambda admin: admin_delays.delayed(admin, topic, max_messages=count),
        )
    except RefusedError as error:
        click.echo(f"without those at delay levels: {error.message}", err=True)
        delayed = []
    rows = [
        TimedMessage(
            deliver_at=time_text(one.deliver_ms),
            topic=one.topic,
            delay_level=None,
            msg_id=one.msg_id,
            recall_handle=one.recall_handle,
        )
        for one in timed
    ]
    rows += [
        TimedMessage(
            deliver_at=time_text(one.deliver_ms),
            topic=one.topic,
            delay_level=one.level,
            msg_id=one.msg_id,
            recall_handle=None,
        )
        for one in delayed
    ]
    rows.sort(key=lambda row: row.deliver_at)
    print_rows(rows, as_json=as_json)


@timer.command(epilog=example("ropeway timer cancel djEgb3JkZXJzIGJyb2tlci0wIC4uLg=="))
@click.argument("recall_handle")
@destructive_options
@cluster_options
def cancel(recall_handle: str, consent: Consent, cluster: Target) -> None:
    """Cancel the message that RECALL_HANDLE names, before it is delivered.

    `ropeway timer list` and `ropeway produce` print the handles.
    """
    try:
        handle = recall.parse(recall_handle)
    except MessageError as error:
        raise MisusedError(str(error)) from error

    what = f"message {handle.unique_key} of topic {handle.topic}"
    if not consent.to(f"cancel {what}"):
        return

    async def take_back() -> str:
        async with cluster.producer(_GROUP) as producer:
            return await producer.recall(handle.topic, recall_handle)

    click.echo(f"message {run(cluster, take_back())} of topic {handle.topic} cancelled")
