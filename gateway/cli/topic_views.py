"""The part of `ropeway topic` that looks and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ropeway.client import admin_groups, admin_topics
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import topic_names
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.output import print_json, print_rows
from ropeway.gateway.cli.times import time_text
from ropeway.gateway.node.names import DLQ_PREFIX, RETRY_PREFIX, is_system_topic

if TYPE_CHECKING:
    from ropeway.client import Admin
    from ropeway.gateway.cli.target import Target

name_argument = click.argument("name", shell_complete=topic_names)


@click.command("list", epilog=example("ropeway topic list"))
@click.option(
    "--all", "everything", is_flag=True, help="Also those that are not users'."
)
@cluster_options
@json_option
def list_(everything: bool, cluster: Target, as_json: bool) -> None:
    """Print the names of all topics."""

    async def names(admin: Admin) -> list[str]:
        return await (admin.topics() if everything else users_topics(admin))

    print_rows([{"topic": name} for name in ask(cluster, names)], as_json=as_json)


async def users_topics(admin: Admin) -> list[str]:
    """The names of all topics but the system's and those of groups.

    Raises:
        RemotingError: No name server answers.
    """
    clusters = await admin.clusters()
    known = {*clusters, *(broker for one in clusters.values() for broker in one)}
    return [
        name
        for name in await admin.topics()
        if not (name in known or _is_derived(name))
    ]


def _is_derived(name: str) -> bool:
    return is_system_topic(name) or name.startswith((RETRY_PREFIX, DLQ_PREFIX))


@click.command(epilog=example("ropeway topic show orders"))
@name_argument
@cluster_options
@json_option
def show(name: str, cluster: Target, as_json: bool) -> None:
    """Print how a topic is set up on each broker, and which groups consume it."""

    async def look(admin: Admin) -> tuple[list[dict[str, Any]], list[str]]:
        return await _setups(admin, name), await admin_groups.groups_of(admin, name)

    rows, groups = ask(cluster, look)
    if as_json:
        print_json({"topic": name, "brokers": rows, "groups": groups})
        return
    _print_setups(rows)
    click.echo(f"groups: {', '.join(groups) or 'none'}")


async def _setups(admin: Admin, name: str) -> list[dict[str, Any]]:
    configs = await admin_topics.configs(admin, name)
    return [
        {
            "topic": name,
            "broker": broker,
            "read_queues": config.read_queue_nums,
            "write_queues": config.write_queue_nums,
            "perm": config.perm,
            "order": config.order,
            "attributes": config.attributes,
        }
        for broker, config in configs.items()
    ]


def _print_setups(rows: list[dict[str, Any]]) -> None:
    texts = (
        " ".join(f"{key}={value}" for key, value in row["attributes"].items())
        for row in rows
    )
    print_rows(
        [{**row, "attributes": text} for row, text in zip(rows, texts, strict=True)],
        as_json=False,
    )


@click.command(epilog=example("ropeway topic stats orders"))
@name_argument
@cluster_options
@json_option
def stats(name: str, cluster: Target, as_json: bool) -> None:
    """Print what each queue of a topic holds, and how much is sent to it."""
    found = ask(cluster, lambda admin: _stats(admin, name))
    if as_json:
        print_json(found)
        return
    _print_stats(found)


async def _stats(admin: Admin, name: str) -> dict[str, Any]:
    spans = await admin_topics.stats(admin, name)
    rate = await admin_topics.put_rate(admin, name)
    return {
        "topic": name,
        "messages": sum(span.end - span.begin for span in spans),
        "in_per_s": rate.per_s,
        "in_last_hour": rate.last_hour,
        "in_last_day": rate.last_day,
        "queues": [
            {
                "broker": span.queue.broker_name,
                "queue_id": span.queue.queue_id,
                "begin": span.begin,
                "end": span.end,
                "messages": span.end - span.begin,
                "newest": time_text(span.newest_ms) if span.newest_ms else "",
            }
            for span in spans
        ],
    }


def _print_stats(found: dict[str, Any]) -> None:
    print_rows(found["queues"], as_json=False)
    click.echo(
        f"{found['messages']} messages; {found['in_per_s']:g} sent a second, "
        f"{found['in_last_hour']} in the last hour, {found['in_last_day']} in the "
        "last day"
    )


@click.command(epilog=example("ropeway topic describe orders"))
@name_argument
@cluster_options
@json_option
def describe(name: str, cluster: Target, as_json: bool) -> None:
    """Print a topic's set-up, its queues, and its groups with their lag."""

    async def look(admin: Admin) -> dict[str, Any]:
        return {
            **await _stats(admin, name),
            "brokers": await _setups(admin, name),
            "groups": [
                {"group": group, "lag": await _lag(admin, group, name)}
                for group in await admin_groups.groups_of(admin, name)
            ],
        }

    found = ask(cluster, look)
    if as_json:
        print_json(found)
        return
    _print_setups(found["brokers"])
    click.echo()
    _print_stats(found)
    click.echo()
    print_rows(found["groups"], as_json=False)


async def _lag(admin: Admin, group: str, topic: str) -> int:
    lags = await admin.describe_group(group)
    return sum(one.lag for one in lags if one.queue.topic == topic)
