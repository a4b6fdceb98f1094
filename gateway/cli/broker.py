"""`ropeway broker`: look at brokers and their nodes, and take brokers out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import structs

from ropeway.client import RemotingError, admin_nodes
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster import row_of
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import broker_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.drains import drain, remove, undrain
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError
from ropeway.gateway.cli.output import print_facts, print_json, print_rows
from ropeway.gateway.cli.pairs import pairs
from ropeway.gateway.cli.rows.brokers import (
    BrokerDescription,
    BrokerShown,
    NodeFacts,
    NodeRow,
)
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
@json_option(list[NodeRow])
def list_(cluster: Target, as_json: bool) -> None:
    """Print every node of every broker, in the order in which they take over."""
    nodes = ask(cluster, admin_nodes.nodes)
    print_rows([_row(node) for node in nodes], as_json=as_json)


def _row(node: Node) -> NodeRow:
    status = node.status
    return NodeRow(
        cluster=node.cluster,
        broker=node.broker,
        rank=node.rank,
        node=node.name,
        address=node.address,
        role="master" if node.leads else "slave",
        version=status.version if status else "",
        state=_state(node),
    )


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
@json_option(BrokerShown)
def show(name: str, settings: bool, cluster: Target, as_json: bool) -> None:
    """Print the state of each node of a broker."""

    async def look(admin: Admin) -> list[NodeFacts]:
        nodes = await admin_nodes.nodes(admin, name)
        return [await _facts(admin, node, settings=settings) for node in nodes]

    found = ask(cluster, look)
    if as_json:
        print_json(BrokerShown(broker=name, nodes=found))
        return
    for facts in found:
        _print_node(facts)
        click.echo()


def _print_node(node: NodeFacts) -> None:
    shown = msgspec.to_builtins(node)
    runtime, setup = shown.pop("runtime"), shown.pop("settings", {})
    del shown["broker"]
    print_facts({**shown, **runtime, **setup}, as_json=False)


@broker.command(epilog=example("ropeway broker describe broker-0"))
@click.argument("name", shell_complete=broker_names)
@cluster_options
@json_option(BrokerDescription)
def describe(name: str, cluster: Target, as_json: bool) -> None:
    """Print how much goes in and out of a broker, and the state of its nodes."""
    found = ask(cluster, lambda admin: _described(admin, name))
    if as_json:
        print_json(found)
        return
    print_facts(
        {one: getattr(found, one) for one in found.__struct_fields__ if one != "nodes"},
        as_json=False,
    )
    for node in found.nodes:
        click.echo()
        _print_node(node)


async def _described(admin: Admin, name: str) -> BrokerDescription:
    nodes = await admin_nodes.nodes(admin, name)
    row = await row_of(admin, nodes)
    counts = await admin_nodes.counts(admin, name)
    return BrokerDescription(
        broker=name,
        cluster=row.cluster,
        master=row.master,
        in_per_s=row.in_per_s,
        out_per_s=row.out_per_s,
        in_today=row.in_today,
        out_today=row.out_today,
        topics=counts.topics,
        producers=counts.producers,
        nodes=[await _facts(admin, node, settings=False) for node in nodes],
    )


@broker.command(
    epilog=example(
        "ropeway broker update broker-0 --set popConsumerKVServiceEnable=false",
    )
)
@click.argument("name", shell_complete=broker_names)
@click.option(
    "--set",
    "values",
    multiple=True,
    required=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A setting, under RocketMQ's name; may be repeated.",
)
@destructive_options
@cluster_options
def update(
    name: str, values: dict[str, str], consent: Consent, cluster: Target
) -> None:
    """Change settings of a broker while it runs, all or none.

    Its master takes them. Ropeway's brokers have few that change so; `ropeway broker
    show --settings` prints all.
    """

    async def look(admin: Admin) -> tuple[str, dict[str, str]]:
        master = (await admin_nodes.nodes(admin, name))[0]
        if not master.leads:
            raise CannotError(f"broker {name} has no master: {_state(master)}")
        return master.address, await admin_nodes.settings(admin, master.address)

    address, before = ask(cluster, look)
    changes = ", ".join(
        f"{one} from {before.get(one, 'unknown')} to {value}"
        for one, value in values.items()
    )
    if consent.to(f"change {changes} of broker {name}"):
        ask(
            cluster,
            lambda admin: admin_nodes.update_settings(admin, address, values),
        )
        click.echo(f"broker {name}: changed {changes}")


async def _facts(admin: Admin, node: Node, *, settings: bool) -> NodeFacts:
    facts: dict[str, Any] = structs.asdict(_row(node))
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
    try:
        facts["runtime"] = await admin_nodes.runtime(admin, node.address)
        if settings:
            facts["settings"] = await admin_nodes.settings(admin, node.address)
    except RemotingError as error:
        facts["state"] = str(error)
    return NodeFacts(**facts)
