"""`ropeway group`: creates, changes, shows and deletes consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import structs

from ropeway.client import Admin, admin_dlq, admin_groups
from ropeway.gateway.cli.clients import ask, confirm, run, yes_option
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.node.names import SYSTEM_GROUP_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.client import Admin, QueueLag
    from ropeway.client.admin_groups import Membership
    from ropeway.gateway.cli.target import Target
    from ropeway.gateway.wire.bodies import GroupConfig

F = TypeVar("F", bound="Callable[..., Any]")

name_argument = click.argument("name", shell_complete=group_names)


@click.group(epilog=example("ropeway group show kitchen"))
def group() -> None:
    """Create, change, show and delete consumer groups."""


@group.command("list", epilog=example("ropeway group list", "ropeway group list --lag"))
@click.option("--all", "everything", is_flag=True, help="Also those of brokers.")
@click.option("--lag", "with_lag", is_flag=True, help="With lag, the largest first.")
@cluster_options
@json_option
def list_(everything: bool, with_lag: bool, cluster: Target, as_json: bool) -> None:
    """Print the names of consumer groups, or the lag of each."""

    async def rows(admin: Admin) -> list[dict[str, Any]]:
        names = [
            name
            for name in await admin.groups()
            if everything or not name.startswith(SYSTEM_GROUP_PREFIX)
        ]
        if not with_lag:
            return [{"group": name} for name in names]
        found = [_total(name, await admin.describe_group(name)) for name in names]
        return sorted(found, key=lambda row: (-row["lag"], row["group"]))

    print_rows(ask(cluster, rows), as_json=as_json)


def _total(name: str, lags: list[QueueLag]) -> dict[str, Any]:
    return {"group": name, "lag": sum(lag.lag for lag in lags), "queues": len(lags)}


@group.command(epilog=example("ropeway group show kitchen"))
@name_argument
@cluster_options
@json_option
def show(name: str, cluster: Target, as_json: bool) -> None:
    """Print a group's settings, its lag and its consumers."""

    async def look(admin: Admin) -> dict[str, Any]:
        config = await admin_groups.known(admin, name)
        lags = await admin.describe_group(name)
        return {
            "group": name,
            "lag": sum(lag.lag for lag in lags),
            "dead_letters": await admin_dlq.count(admin, name),
            "consumers": await admin.consumers(name),
            "queues": [_lag(lag) for lag in lags],
            "config": config,
        }

    found = ask(cluster, look)
    if as_json:
        print_json(found)
        return
    print_rows(found["queues"], as_json=False)
    facts = {
        "lag": found["lag"],
        "dead letters": found["dead_letters"],
        "consumers": ", ".join(found["consumers"]) or "none",
        **_setup(found["config"]),
    }
    for fact, value in facts.items():
        click.echo(f"{fact}: {value}")


def _lag(lag: QueueLag) -> dict[str, Any]:
    return {
        "topic": lag.queue.topic,
        "broker": lag.queue.broker_name,
        "queue_id": lag.queue.queue_id,
        "committed": lag.committed,
        "end": lag.end,
        "lag": lag.lag,
    }


def _setup(config: GroupConfig) -> dict[str, Any]:
    return {
        "may consume": _yes(config.consume_enable),
        "may broadcast": _yes(config.consume_broadcast_enable),
        "in order": _yes(config.consume_message_orderly),
        "retries": config.retry_max_times,
        "retry queues": config.retry_queue_nums,
        "reads at": "a slave" if config.broker_id else "the master",
    }


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


@group.command(epilog=example("ropeway group members kitchen"))
@name_argument
@cluster_options
@json_option
def members(name: str, cluster: Target, as_json: bool) -> None:
    """Print the clients that consume in a group, and what they subscribe to."""

    async def look(admin: Admin) -> Membership:
        await admin_groups.known(admin, name)
        return await admin_groups.membership(admin, name)

    found = ask(cluster, look)
    clients = [structs.asdict(member) for member in found.members]
    wanted = [
        {"topic": topic, "type": data.expression_type, "filter": data.sub_string}
        for topic, data in sorted(found.subscriptions.items())
    ]
    model = "broadcasting" if found.is_broadcast else "clustering"
    if as_json:
        print_json({"model": model, "members": clients, "subscriptions": wanted})
        return
    print_rows(clients, as_json=False)
    print_rows(wanted, as_json=False)
    click.echo(f"{len(clients)} consumers, {model}")


def _setting_options(command: F) -> F:
    for option in (
        click.option(
            "--consume/--no-consume", default=None, help="Whether it is allowed."
        ),
        click.option(
            "--broadcast/--no-broadcast", default=None, help="Whether it is allowed."
        ),
        click.option(
            "--in-order/--not-in-order",
            default=None,
            help="Whether it is said to consume in order.",
        ),
        click.option(
            "--retries",
            type=click.IntRange(0),
            help="How often a message comes again; 16 by default.",
        ),
        click.option(
            "--retry-queues", type=click.IntRange(0), help="Queues of its retry topic."
        ),
        click.option(
            "--read-at",
            type=click.Choice(["master", "slave"]),
            help="Which nodes are to be read.",
        ),
    ):
        command = option(command)
    return command


def _changes(
    *,
    consume: bool | None,
    broadcast: bool | None,
    in_order: bool | None,
    retries: int | None,
    retry_queues: int | None,
    read_at: str | None,
) -> dict[str, Any]:
    wanted = {
        "consume_enable": consume,
        "consume_broadcast_enable": broadcast,
        "consume_message_orderly": in_order,
        "retry_max_times": retries,
        "retry_queue_nums": retry_queues,
        "broker_id": None if read_at is None else int(read_at == "slave"),
    }
    return {name: value for name, value in wanted.items() if value is not None}


@group.command(epilog=example("ropeway group create kitchen --retries 3"))
@click.argument("name")
@_setting_options
@cluster_options
def create(name: str, cluster: Target, **settings: Any) -> None:
    """Create a group that does not exist."""
    changes = _changes(**settings)
    ask(cluster, lambda admin: admin_groups.create(admin, name, changes))
    click.echo(f"group {name} created")


@group.command(epilog=example("ropeway group update kitchen --no-consume"))
@name_argument
@_setting_options
@cluster_options
def update(name: str, cluster: Target, **settings: Any) -> None:
    """Change a group; settings that are not given stay."""
    changes = _changes(**settings)
    if not changes:
        raise MisusedError("nothing to change; --help has what can be")
    ask(cluster, lambda admin: admin_groups.update(admin, name, changes))
    click.echo(f"group {name} updated")


@group.command(epilog=example("ropeway group delete kitchen --yes"))
@name_argument
@yes_option
@cluster_options
def delete(name: str, yes: bool, cluster: Target) -> None:
    """Delete a group with its offsets."""
    confirm(f"Delete group {name} with its offsets?", yes=yes)

    async def remove() -> None:
        async with cluster.admin() as admin:
            await admin_groups.known(admin, name)
            await admin.delete_group(name)

    run(cluster, remove())
    click.echo(f"group {name} deleted")
