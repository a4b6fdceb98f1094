"""`ropeway cluster`: all brokers at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import RemotingError, admin_nodes
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.brokers import ClusterRow

if TYPE_CHECKING:
    from ropeway.client import Admin
    from ropeway.client.admin_nodes import Node
    from ropeway.gateway.cli.target import Target


@click.group(epilog=example("ropeway cluster show"))
def cluster() -> None:
    """Show all brokers at a glance."""


@cluster.command(epilog=example("ropeway cluster show"))
@cluster_options
@json_option(list[ClusterRow])
def show(cluster: Target, as_json: bool) -> None:
    """Print each broker with its nodes, and how much goes in and out."""

    async def rows(admin: Admin) -> list[ClusterRow]:
        nodes = await admin_nodes.nodes(admin)
        return [
            await row_of(admin, [node for node in nodes if node.broker == name])
            for name in sorted({node.broker for node in nodes})
        ]

    print_rows(ask(cluster, rows), as_json=as_json)


async def row_of(admin: Admin, nodes: list[Node]) -> ClusterRow:
    """A broker at a glance."""
    master = next((node for node in nodes if node.leads), nodes[0])
    try:
        facts = await admin_nodes.runtime(admin, master.address)
    except RemotingError:
        # Which one of the nodes it is, `ropeway broker show` says.
        facts = {}
    return ClusterRow(
        cluster=master.cluster,
        broker=master.broker,
        master=master.address,
        nodes=len(nodes),
        version=facts.get("brokerVersionDesc", ""),
        in_per_s=_first(facts, "putTps"),
        out_per_s=_first(facts, "getTransferredTps"),
        in_today=_today(facts, "Put"),
        out_today=_today(facts, "Get"),
    )


def _first(facts: dict[str, str], name: str) -> float:
    """The rate of the last seconds; those of the last minutes follow."""
    rates = facts.get(name, "").split()
    return float(rates[0]) if rates else 0.0


def _today(facts: dict[str, str], what: str) -> int:
    now = int(facts.get(f"msg{what}TotalTodayNow", 0))
    return now - int(facts.get(f"msg{what}TotalTodayMorning", 0))
