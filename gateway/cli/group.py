"""`ropeway group`: creates, changes, shows and deletes consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import structs

from ropeway.client import Admin, admin_dlq, admin_groups
from ropeway.client.versions import version_text
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.group_sizes import sized
from ropeway.gateway.cli.names import matching, names_option
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.rows.groups import (
    GroupDescription,
    GroupMembers,
    GroupQueue,
    GroupRow,
    GroupSettings,
    GroupShown,
    Member,
    Subscription,
)
from ropeway.gateway.cli.watch import count_option, watch_option, watched
from ropeway.gateway.node.names import is_listed_group

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from ropeway.client import Admin, QueueLag
    from ropeway.gateway.cli.target import Target
    from ropeway.gateway.wire.bodies import GroupConfig

F = TypeVar("F", bound="Callable[..., Any]")

name_argument = click.argument("name", shell_complete=group_names)


@click.group(epilog=example("ropeway group show kitchen"))
def group() -> None:
    """Create, change, show and delete consumer groups."""


@group.command(
    "list",
    epilog=example(
        "ropeway group list",
        "ropeway group list --names 'kitchen.*' --lag --watch 2",
    ),
)
@click.option("--all", "everything", is_flag=True, help="Also those of brokers.")
@names_option
@click.option("--lag", "with_lag", is_flag=True, help="With lag, the largest first.")
@click.option(
    "--sizes", is_flag=True, help="With lag, members, and how much each is given."
)
@watch_option
@count_option
@cluster_options
@json_option(list[GroupRow])
def list_(
    everything: bool,
    pattern: re.Pattern[str] | None,
    with_lag: bool,
    sizes: bool,
    watch_s: float | None,
    looks: int | None,
    cluster: Target,
    as_json: bool,
) -> None:
    """Print the names of consumer groups, or the lag of each."""

    async def rows(admin: Admin) -> list[GroupRow]:
        names = [
            name
            for name in matching(await admin.groups(), pattern)
            if everything or is_listed_group(name)
        ]
        if not (with_lag or sizes):
            return [GroupRow(group=name) for name in names]
        found = [await sized(admin, name, sizes=sizes) for name in names]
        return sorted(found, key=lambda row: (-(row.lag or 0), row.group))

    watched(lambda: print_rows(ask(cluster, rows), as_json=as_json), watch_s, looks)


@group.command(epilog=example("ropeway group show kitchen"))
@name_argument
@cluster_options
@json_option(GroupShown)
def show(name: str, cluster: Target, as_json: bool) -> None:
    """Print a group's settings, its lag and its consumers."""
    found = ask(cluster, lambda admin: _shown(admin, name))
    if as_json:
        print_json(found)
        return
    _print_shown(found)


@group.command(epilog=example("ropeway group describe kitchen"))
@name_argument
@cluster_options
@json_option(GroupDescription)
def describe(name: str, cluster: Target, as_json: bool) -> None:
    """Print a group's settings, its lag, its clients and their subscriptions."""

    async def look(admin: Admin) -> GroupDescription:
        shown, joined = await _shown(admin, name), await _joined(admin, name)
        return GroupDescription(**structs.asdict(shown), **structs.asdict(joined))

    found = ask(cluster, look)
    if as_json:
        print_json(found)
        return
    _print_shown(found)
    click.echo()
    _print_joined(found)


async def _shown(admin: Admin, name: str) -> GroupShown:
    config = await admin_groups.known(admin, name)
    lags = await admin.describe_group(name)
    return GroupShown(
        group=name,
        lag=sum(lag.lag for lag in lags),
        dead_letters=await admin_dlq.count(admin, name),
        consumers=await admin.consumers(name),
        queues=[queue_row(lag) for lag in lags],
        settings=settings_of(config),
    )


def _print_shown(found: GroupShown) -> None:
    print_rows(found.queues, as_json=False)
    settings = found.settings
    facts = {
        "lag": found.lag,
        "dead letters": found.dead_letters,
        "consumers": ", ".join(found.consumers) or "none",
        "may consume": _yes(settings.consume),
        "may broadcast": _yes(settings.broadcast),
        "in order": _yes(settings.in_order),
        "retries": settings.retries,
        "retry queues": settings.retry_queues,
        "reads at": "a slave" if settings.read_at == "slave" else "the master",
    }
    for fact, value in facts.items():
        click.echo(f"{fact}: {value}")


def queue_row(lag: QueueLag) -> GroupQueue:
    """How far a group is in a queue, and how many messages it has left."""
    return GroupQueue(
        topic=lag.queue.topic,
        broker=lag.queue.broker_name,
        queue_id=lag.queue.queue_id,
        committed=lag.committed,
        end=lag.end,
        lag=lag.lag,
    )


def settings_of(config: GroupConfig) -> GroupSettings:
    """How a group is set up, by the names of the options that change it."""
    return GroupSettings(
        consume=config.consume_enable,
        broadcast=config.consume_broadcast_enable,
        in_order=config.consume_message_orderly,
        retries=config.retry_max_times,
        retry_queues=config.retry_queue_nums,
        read_at="slave" if config.broker_id else "master",
    )


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


@group.command(epilog=example("ropeway group members kitchen"))
@name_argument
@cluster_options
@json_option(GroupMembers)
def members(name: str, cluster: Target, as_json: bool) -> None:
    """Print the clients that consume in a group, and what they subscribe to."""

    async def look(admin: Admin) -> GroupMembers:
        await admin_groups.known(admin, name)
        return await _joined(admin, name)

    found = ask(cluster, look)
    if as_json:
        print_json(found)
        return
    _print_joined(found)


async def _joined(admin: Admin, name: str) -> GroupMembers:
    found = await admin_groups.membership(admin, name)
    return GroupMembers(
        model="broadcasting" if found.is_broadcast else "clustering",
        members=[
            Member(**{**structs.asdict(one), "version": version_text(one.version)})
            for one in found.members
        ],
        subscriptions=[
            Subscription(topic=topic, type=data.expression_type, filter=data.sub_string)
            for topic, data in sorted(found.subscriptions.items())
        ],
    )


def _print_joined(found: GroupMembers | GroupDescription) -> None:
    print_rows(found.members, as_json=False)
    print_rows(found.subscriptions, as_json=False)
    click.echo(f"{len(found.members)} consumers, {found.model}")


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


def changes_of(
    *,
    consume: bool | None = None,
    broadcast: bool | None = None,
    in_order: bool | None = None,
    retries: int | None = None,
    retry_queues: int | None = None,
    read_at: str | None = None,
) -> dict[str, Any]:
    """The members of a `GroupConfig` that are given."""
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
    changes = changes_of(**settings)
    ask(cluster, lambda admin: admin_groups.create(admin, name, changes))
    click.echo(f"group {name} created")


@group.command(epilog=example("ropeway group update kitchen --no-consume"))
@name_argument
@_setting_options
@cluster_options
def update(name: str, cluster: Target, **settings: Any) -> None:
    """Change a group; settings that are not given stay."""
    changes = changes_of(**settings)
    if not changes:
        raise MisusedError("nothing to change; --help has what can be")
    ask(cluster, lambda admin: admin_groups.update(admin, name, changes))
    click.echo(f"group {name} updated")


@group.command(epilog=example("ropeway group delete kitchen --yes"))
@name_argument
@destructive_options
@cluster_options
def delete(name: str, consent: Consent, cluster: Target) -> None:
    """Delete a group with its offsets."""
    ask(cluster, lambda admin: admin_groups.known(admin, name))
    if consent.to(f"delete group {name} with its offsets"):
        ask(cluster, lambda admin: admin.delete_group(name))
        click.echo(f"group {name} deleted")
