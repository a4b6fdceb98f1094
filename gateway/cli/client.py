"""`ropeway client`: who is connected, and what consumers say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET, structs

from ropeway.client import admin_clients, admin_groups
from ropeway.client.admin_groups import SilentClientError
from ropeway.client.versions import version_text
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.rows.clients import (
    ClientDescription,
    ClientMembership,
    ClientQueue,
    ClientRow,
    ClientTopic,
)
from ropeway.gateway.cli.rows.groups import Subscription

if TYPE_CHECKING:
    from ropeway.client import Admin
    from ropeway.client.admin_clients import ClientGroup, RunningInfo
    from ropeway.gateway.cli.target import Target


@click.group(epilog=example("ropeway client list"))
def client() -> None:
    """Show connected clients, and what consumers say of themselves."""


@client.command(
    "list", epilog=example("ropeway client list", "ropeway client list --group kitchen")
)
@click.option("--group", help="Only this group's.", shell_complete=group_names)
@cluster_options
@json_option(list[ClientRow])
def list_(group: str | None, cluster: Target, as_json: bool) -> None:
    """Print connected clients, a line for each of their groups."""
    rows = [
        ClientRow(**{**structs.asdict(one), "version": version_text(one.version)})
        for one in ask(cluster, admin_clients.connected)
        if group is None or one.group == group
    ]
    print_rows(rows, as_json=as_json)


@client.command(
    epilog=example(
        "ropeway client describe 10.0.0.7@4711",
        "ropeway client describe 10.0.0.7@4711 --stack",
    )
)
@click.argument("client_id")
@click.option("--stack", is_flag=True, help="With the stacks of a consumer's threads.")
@cluster_options
@json_option(ClientDescription)
def describe(client_id: str, stack: bool, cluster: Target, as_json: bool) -> None:
    """Print a client's groups, and what a consumer says of its queues and speed."""
    found = ask(cluster, lambda admin: _described(admin, client_id, stack=stack))
    if as_json:
        print_json(found)
        return
    for name in ("client_id", "address", "language", "version"):
        click.echo(f"{name}: {getattr(found, name)}")
    for one in found.memberships:
        click.echo(f"\n{one.role} in group {one.group}")
        for rows in (one.subscriptions, one.reads, one.topics):
            print_rows(rows or [], as_json=False)
        if one.answers is False:
            click.echo("it does not answer: see whether its process hangs")
        elif one.reads is None:
            click.echo("it does not say which queues it reads")
    if found.stack:
        click.echo(f"\n{found.stack}")


async def _described(admin: Admin, client_id: str, *, stack: bool) -> ClientDescription:
    memberships = await admin_clients.find(admin, client_id)
    first = memberships[0]
    found, stacks = [], []
    for one in memberships:
        membership, its_stack = await _membership(admin, one, stack=stack)
        found.append(membership)
        stacks.append(its_stack)
    return ClientDescription(
        client_id=client_id,
        address=first.address,
        language=first.language,
        version=version_text(first.version),
        memberships=found,
        stack=next(filter(None, stacks), None) if stack else UNSET,
    )


async def _membership(
    admin: Admin, one: ClientGroup, *, stack: bool
) -> tuple[ClientMembership, str | None]:
    if one.role == admin_clients.PRODUCER:
        return ClientMembership(group=one.group, role=one.role), None
    joined = await admin_groups.membership(admin, one.group)
    info, answers = None, True
    try:
        info = await admin_clients.consumption(admin, one, stack=stack)
    except SilentClientError:
        answers = False
    found = ClientMembership(
        group=one.group,
        role=one.role,
        model="broadcasting" if joined.is_broadcast else "clustering",
        subscriptions=[
            Subscription(topic=topic, type=data.expression_type, filter=data.sub_string)
            for topic, data in sorted(joined.subscriptions.items())
        ],
        reads=None if info is None else _queues(info),
        topics=None if info is None else _topics(info),
        answers=answers,
    )
    return found, None if info is None else info.stack


def _queues(info: RunningInfo) -> list[ClientQueue]:
    return [
        ClientQueue(
            topic=one.queue.topic,
            broker=one.queue.broker_name,
            queue_id=one.queue.queue_id,
            committed=one.committed,
            cached=one.cached,
        )
        for one in info.queues
    ]


def _topics(info: RunningInfo) -> list[ClientTopic]:
    return [
        ClientTopic(
            topic=name,
            pulled_per_s=round(one.pull_tps, 2),
            done_per_s=round(one.consume_ok_tps, 2),
            failed_per_s=round(one.consume_failed_tps, 2),
            consume_ms=round(one.consume_rt, 2),
        )
        for name, one in sorted(info.rates.items())
    ]
