"""`ropeway route`: the placement of queues and the masters of brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ropeway.client import Admin, ResponseError, admin_nodes, admin_topics
from ropeway.gateway.cli.clients import ask, run
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import broker_names, topic_argument, topic_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_json, print_rows, progress
from ropeway.gateway.cli.rebalance import rebalance
from ropeway.gateway.cli.rows import Planned
from ropeway.gateway.cli.rows.brokers import BrokerRoute, HandOverRow, NodeDrained
from ropeway.gateway.cli.rows.topics import TopicPlace

if TYPE_CHECKING:
    from ropeway.client.admin_nodes import HandOver
    from ropeway.gateway.cli.target import Target

_MAX_QUEUES = 1024

queues_option = click.option(
    "--queues", type=click.IntRange(1, _MAX_QUEUES), required=True, help="How many."
)
broker_option = click.option(
    "--broker", required=True, help="On this broker.", shell_complete=broker_names
)


@click.group(epilog=example("ropeway route show orders"))
def route() -> None:
    """Show and change the placement of queues and the masters of brokers."""


@route.command(epilog=example("ropeway route show", "ropeway route show orders"))
@click.argument("topic", required=False, shell_complete=topic_names)
@cluster_options
@json_option(list[BrokerRoute], list[TopicPlace])
def show(topic: str | None, cluster: Target, as_json: bool) -> None:
    """Print the nodes of each broker; with a TOPIC, where its queues are."""
    if topic is None:
        print_rows(ask(cluster, _orders), as_json=as_json)
    else:
        print_rows(ask(cluster, lambda admin: _places(admin, topic)), as_json=as_json)


async def _orders(admin: Admin) -> list[BrokerRoute]:
    nodes = await admin_nodes.nodes(admin)
    return [
        BrokerRoute(
            cluster=master.cluster,
            broker=master.broker,
            master=master.name,
            slaves=[
                one.name for one in nodes if one.broker == master.broker and one.rank
            ],
        )
        for master in nodes
        if master.rank == 0
    ]


async def _places(admin: Admin, topic: str) -> list[TopicPlace]:
    found = await admin.route(topic)
    try:
        places = await admin_topics.places(admin, topic)
    except ResponseError:
        # RocketMQ's own name servers know of no partitions.
        places = {}
    return [
        TopicPlace(
            topic=topic,
            broker=name,
            master=nodes.get(0, ""),
            read_queues=sum(queue.broker_name == name for queue in found.read_queues),
            write_queues=sum(queue.broker_name == name for queue in found.write_queues),
            partitions=places.get(name, []),
        )
        for name, nodes in sorted(found.brokers.items())
    ]


@route.command(
    epilog=example("ropeway route create orders --broker broker-1 --queues 4")
)
@topic_argument
@broker_option
@queues_option
@click.option(
    "--perm",
    type=click.Choice(["2", "4", "6"]),
    default="6",
    show_default=True,
    help="2: only sending, 4: only reading, 6: both.",
)
@cluster_options
def create(topic: str, broker: str, queues: int, perm: str, cluster: Target) -> None:
    """Put TOPIC on a broker that does not have it."""
    ask(
        cluster,
        lambda admin: admin_topics.create_on(admin, topic, broker, queues, int(perm)),
    )
    click.echo(f"topic {topic} has {queues} queues on broker {broker}")


@route.command(
    epilog=example("ropeway route expand orders --broker broker-0 --queues 16")
)
@topic_argument
@broker_option
@queues_option
@cluster_options
def expand(topic: str, broker: str, queues: int, cluster: Target) -> None:
    """Add queues of TOPIC on one broker; existing ones stay as they are."""
    ask(
        cluster,
        lambda admin: admin_topics.expand(admin, topic, queues, broker),
    )
    click.echo(f"topic {topic} has {queues} queues on broker {broker}")


@route.command(epilog=example("ropeway route delete orders --broker broker-1 --yes"))
@topic_argument
@broker_option
@destructive_options
@cluster_options
def delete(topic: str, broker: str, consent: Consent, cluster: Target) -> None:
    """Delete TOPIC's queues on one broker, with their messages.

    Other brokers keep theirs, and so does the topic: the last broker's queues are
    deleted by `ropeway topic delete`.
    """
    count = ask(cluster, lambda admin: admin_topics.queues_on(admin, topic, broker))
    if consent.to(
        f"delete {count} queues of topic {topic} on broker {broker} with their messages"
    ):
        ask(cluster, lambda admin: admin_topics.delete_from(admin, topic, broker))
        click.echo(f"topic {topic}: {count} queues deleted from broker {broker}")


@route.command(epilog=example("ropeway route move broker-0 --to node-b"))
@click.argument("broker", shell_complete=broker_names)
@click.option(
    "--to", required=True, metavar="NODE", help="The new master: a name or HOST:PORT."
)
@destructive_options
@cluster_options
@json_option(list[HandOverRow], Planned)
def move(
    broker: str, to: str, consent: Consent, cluster: Target, as_json: bool
) -> None:
    """Make another node the master of a broker, and wait until it is.

    Clients notice a short wait and nothing else. Only on Pulsar: nobody else can open
    an embedded log.
    """
    order = ask(cluster, lambda admin: admin_nodes.nodes(admin, broker))
    action = f"make {to} the master of broker {broker}, instead of {order[0].name}"
    if consent.to(action, as_json=as_json):
        moved = ask(cluster, lambda admin: admin_nodes.move(admin, broker, to))
        _print_moves([moved], as_json=as_json)


@route.command(
    epilog=example("ropeway route drain node-a", "ropeway route drain 10.0.0.7")
)
@click.argument("node")
@destructive_options
@cluster_options
@json_option(NodeDrained, Planned)
def drain(node: str, consent: Consent, cluster: Target, as_json: bool) -> None:
    """Move all masters away from NODE: its name, HOST:PORT, or HOST for all there.

    It may be stopped then, and nobody waits for it.
    """

    async def work() -> list[HandOver]:
        done = []
        async with cluster.admin() as admin:
            with progress("moving masters") as step:
                async for one in admin_nodes.drain(admin, node):
                    done.append(one)
                    step()
        return done

    leaving = ask(cluster, lambda admin: admin_nodes.at(admin, node))
    led = sorted(one.broker for one in leaving if one.rank == 0)
    action = f"move the masters of {', '.join(led) or 'no broker'} away from {node}"
    if not consent.to(action, as_json=as_json):
        return
    moved = run(cluster, work())
    _print_moves(moved, as_json=as_json, drained=node)


route.add_command(rebalance)


def _print_moves(
    moved: list[HandOver], *, as_json: bool, drained: str | None = None
) -> None:
    rows = [
        HandOverRow(
            broker=one.broker,
            before=one.before,
            master=one.after,
            took_ms=one.took_ms,
        )
        for one in moved
    ]
    if as_json:
        print_json(rows if drained is None else NodeDrained(node=drained, moved=rows))
        return
    print_rows(rows, as_json=False)
    if drained is not None:
        click.echo(f"{drained} leads no broker; it may be stopped now")
