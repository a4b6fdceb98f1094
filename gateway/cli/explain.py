"""`ropeway explain`: why a message was not delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import structs

from ropeway.client import admin_explain
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_argument, topic_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_json, whole
from ropeway.gateway.cli.rows.messages import Explained, FindingRow

if TYPE_CHECKING:
    from ropeway.gateway.cli.target import Target


@click.command(
    epilog=example(
        "ropeway explain 7F00000100002694000000000000000A kitchen --topic orders",
    )
)
@click.argument("msg_id")
@group_argument
@click.option(
    "--topic",
    help="The message's; needed for the id that its producer gave it.",
    shell_complete=topic_names,
)
@cluster_options
@json_option(Explained)
def explain(
    msg_id: str, group: str, topic: str | None, cluster: Target, as_json: bool
) -> None:
    """Explain why message MSG_ID was not delivered to GROUP, and what to do."""
    found = ask(
        cluster, lambda admin: admin_explain.explain(admin, msg_id, group, topic)
    )
    if as_json:
        shown = whole(found.message) if found.message else None
        findings = [FindingRow(**structs.asdict(one)) for one in found.findings]
        print_json(Explained(findings=findings, message=shown))
        return
    for finding in found.findings:
        click.echo(f"{finding.code}: {finding.text}")
        click.echo(f"  -> {finding.advice}")
