"""`ropeway quota`: limit what is sent to topics and read by groups, while nodes run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from ropeway.client import (
    RemotingError,
    TopicNotFoundError,
    admin_groups,
    admin_quotas,
)
from ropeway.client.admin_quotas import Quota
from ropeway.gateway.cli.clients import ask
from ropeway.gateway.cli.cluster_options import cluster_options, json_option
from ropeway.gateway.cli.completion import group_names, topic_names
from ropeway.gateway.cli.consent import Consent, destructive_options
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import MisusedError
from ropeway.gateway.cli.output import print_rows
from ropeway.gateway.cli.rows.access import QuotaRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.client import Admin
    from ropeway.gateway.cli.target import Target

_RATE = click.IntRange(0, 2**53)


@click.group(epilog=example("ropeway quota set --topic orders --send-bytes 1000000"))
def quota() -> None:
    """Set limits for sending to topics and reading by groups, while nodes run."""


def _of(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say whose quota it is."""
    topic = click.option("--topic", help="Of this topic.", shell_complete=topic_names)
    group = click.option("--group", help="Of this group.", shell_complete=group_names)
    return topic(group(command))


def _key(topic: str | None, group: str | None) -> tuple[str, str]:
    if topic is not None and group is None:
        return "topic", topic
    if group is not None and topic is None:
        return "group", group
    raise MisusedError("give one of --topic and --group")


@quota.command(
    "set",
    epilog=example(
        "ropeway quota set --topic orders --send-bytes 1000000 --send-requests 500",
        "ropeway quota set --group nightly --read-bytes 5000000 --cold-bytes 1000000",
    ),
)
@_of
@click.option("--send-requests", type=_RATE, help="Of a topic: sends a second.")
@click.option("--send-bytes", type=_RATE, help="Of a topic: their bytes a second.")
@click.option("--read-requests", type=_RATE, help="Reads with messages a second.")
@click.option("--read-bytes", type=_RATE, help="Their bytes a second.")
@click.option(
    "--cold-bytes",
    type=_RATE,
    help="Of a group: bytes a second that a node does not have in memory.",
)
@cluster_options
def set_(
    topic: str | None,
    group: str | None,
    send_requests: int | None,
    send_bytes: int | None,
    read_requests: int | None,
    read_bytes: int | None,
    cold_bytes: int | None,
    cluster: Target,
) -> None:
    """Set limits of a topic or a group, on each node; 0 removes a limit.

    Limits that are not given stay as they are. Nothing is refused: who sends or reads
    more is slowed down. The topic or the group need not exist yet.
    """
    kind, name = _key(topic, group)
    limits = Quota(send_requests, send_bytes, read_requests, read_bytes, cold_bytes)
    if limits == Quota():
        raise MisusedError("give at least one limit")
    if kind == "group" and (send_requests, send_bytes) != (None, None):
        raise MisusedError("--send-requests and --send-bytes are limits of topics")
    if kind == "topic" and cold_bytes is not None:
        raise MisusedError("--cold-bytes is a limit of groups")

    async def work(admin: Admin) -> bool:
        await admin_quotas.set_limits(admin, kind, name, limits)
        return await _is_missing(admin, kind, name)

    if ask(cluster, work):
        click.echo(
            f"{kind} {name} does not exist; its limits hold once it does", err=True
        )
    click.echo(f"limits of {kind} {name} set, for each node")


async def _is_missing(admin: Admin, kind: str, name: str) -> bool:
    """Whether it is sure that there is none of the name: a typing error, perhaps."""
    try:
        if kind == "group":
            return await admin_groups.config(admin, name) is None
        await admin.route(name)
    except TopicNotFoundError:
        return True
    except RemotingError:
        # The limits are set; who asks may not see more, or a broker is away.
        return False
    return False


@quota.command(
    "list", epilog=example("ropeway quota list", "ropeway quota list --json")
)
@cluster_options
@json_option(list[QuotaRow])
def list_(cluster: Target, as_json: bool) -> None:
    """Print all limits, and how often something was slowed down for each."""
    rows = [
        QuotaRow(
            kind=one.kind,
            name=one.name,
            throttled=one.throttled,
            **{
                name.removesuffix("_per_s"): value
                for name, value in structs.asdict(one.quota).items()
            },
        )
        for one in ask(cluster, admin_quotas.listed)
    ]
    print_rows(rows, as_json=as_json)


@quota.command(epilog=example("ropeway quota delete --topic orders"))
@_of
@destructive_options
@cluster_options
def delete(
    topic: str | None, group: str | None, consent: Consent, cluster: Target
) -> None:
    """Remove all limits of a topic or a group."""
    kind, name = _key(topic, group)
    if consent.to(f"remove all limits of {kind} {name}"):
        ask(cluster, lambda admin: admin_quotas.delete(admin, kind, name))
        click.echo(f"{kind} {name} has no limits")
