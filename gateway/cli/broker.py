"""`ropeway broker`: look at brokers and their nodes, and take brokers out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ropeway.client import RemotingError, admin_nodes
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import broker_names
from ropeway.gateway.cli.drains import drain, remove, undrain
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_facts, print_json, print_rows
from ropeway.gateway.cli.times import time_text

if TYPE_CHECKING:
    from ropeway.client import Admin
    from ropeway.client.admin_nodes import Node
    from ropeway.gateway.cli.target import Target


@click.group(epilog=example("ropeway broker list"))
def broker() -> None:
    """Show brokers and their nodes, and drain and remove brokers."""


@broker.command("list", epilog=example("ropeway broker list"))
@cluster_options
@json_option
def list_(cluster: Target, as_json: bool) -> None:
    """Print every node of every broker, in the order in which they take over."""
    nodes = ask(cluster, admin_nodes.nodes)
    print_rows([_row(node) for node in nodes], as_json=as_json)


def _row(node: Node) -> dict[str, Any]:
    status = node.status
    return {
        "cluster": node.cluster,
        "broker": node.broker,
        "rank": node.rank,
        "node": node.name,
        "address": node.address,
        "role": "master" if node.leads else "slave",
        "version": status.version if status else "",
        "state": _state(node),
    }


def _state(node: Node) -> str:
    if node.status is None:
        return node.trouble
    return "draining" if node.status.drained else "ok"


for each in (drain, undrain, remove):
    broker.add_command(each)


@broker.command(
    epilog=example(
        "ropeway broker show broker-0", "ropeway broker show broker-0 --settings"
    )
)
@click.argument("name", shell_complete=broker_names)
@click.option("--settings", is_flag=True, help="Also how each node is set up.")
@cluster_options
@json_option
def show(name: str, settings: bool, cluster: Target, as_json: bool) -> None:
    """Print the state of each node of a broker."""

    async def look(admin: Admin) -> list[dict[str, Any]]:
        nodes = await admin_nodes.nodes(admin, name)
        return [await _facts(admin, node, settings=settings) for node in nodes]

    found = ask(cluster, look)
    if as_json:
        print_json({"broker": name, "nodes": found})
        return
    for facts in found:
        runtime, setup = facts.pop("runtime"), facts.pop("settings", {})
        facts.pop("broker")
        print_facts({**facts, **runtime, **setup}, as_json=False)
        click.echo()


async def _facts(admin: Admin, node: Node, *, settings: bool) -> dict[str, Any]:
    facts: dict[str, Any] = _row(node)
    if node.status is not None:
        facts |= {
            "started": time_text(node.status.started_ms),
            "log": node.status.log,
            "routes": node.status.routes,
            "routes_held": node.status.routes_held,
            "overdue_ms": node.status.overdue_ms,
            "clock_ms": node.clock_ms,
            "round_trip_ms": node.round_trip_ms,
        }
    facts["runtime"] = {}
    try:
        facts["runtime"] = await admin_nodes.runtime(admin, node.address)
        if settings:
            facts["settings"] = await admin_nodes.settings(admin, node.address)
    except RemotingError as error:
        facts["state"] = str(error)
    return facts
