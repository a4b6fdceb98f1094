"""`ropeway transaction`: lists transactions that are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import admin_transactions
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import topic_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.messages import OpenTransaction
from ropeway.gateway.cli.timer import count_option
from ropeway.gateway.cli.times import time_text

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target


@click.group(epilog=example("ropeway transaction list --topic orders"))
def transaction() -> None:
    """List transactions that are open."""


@transaction.command("list", epilog=example("ropeway transaction list --topic orders"))
@click.option(
    "--topic", help="Only messages for this topic.", shell_complete=topic_names
)
@count_option
@cluster_options
@json_option(list[OpenTransaction])
def list_(topic: str | None, count: int, cluster: Target, as_json: bool) -> None:
    """Print messages whose producers have neither committed nor rolled them back.

    Those that were given up are in the topic TRANS_CHECK_MAX_TIME_TOPIC.
    """
    found = ask(
        cluster,
        lambda admin: admin_transactions.open_transactions(
            admin, topic=topic, most=count
        ),
    )
    rows = [
        OpenTransaction(
            msg_id=one.msg_id,
            topic=one.topic,
            producer_group=one.producer_group,
            born=time_text(one.born_ms),
            asked=one.checks,
        )
        for one in found
    ]
    print_rows(rows, as_json=as_json)
