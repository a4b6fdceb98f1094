"""`ropeway group`: look at consumer groups, and delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gateway.cli.clients import json_option, name_server_option, run, yes_option
from gateway.cli.examples import example
from gateway.cli.failures import CannotError
from gateway.cli.output import print_json, print_rows
from ropeway.client import Admin

if TYPE_CHECKING:
    from ropeway.client import QueueLag


@click.group(epilog=example("ropeway group describe kitchen"))
def group() -> None:
    """Look at consumer groups, and delete them."""


@group.command("list", epilog=example("ropeway group list"))
@name_server_option
@json_option
def list_(name_server: str, as_json: bool) -> None:
    """Print the names of all consumer groups."""

    async def names() -> list[str]:
        async with Admin(name_server) as admin:
            return await admin.groups()

    print_rows([{"group": name} for name in run(names())], as_json=as_json)


@group.command(epilog=example("ropeway group describe kitchen"))
@click.argument("name")
@name_server_option
@json_option
def describe(name: str, name_server: str, as_json: bool) -> None:
    """Print how far a group is behind in each queue, and who consumes in it."""

    async def ask() -> tuple[list[QueueLag], list[str]]:
        async with Admin(name_server) as admin:
            if name not in await admin.groups():
                raise CannotError(f"there is no group {name}")
            return await admin.describe_group(name), await admin.consumers(name)

    lags, consumers = run(ask())
    rows = [
        {
            "topic": lag.queue.topic,
            "broker": lag.queue.broker_name,
            "queue": lag.queue.queue_id,
            "committed": lag.committed,
            "end": lag.end,
            "lag": lag.lag,
        }
        for lag in lags
    ]
    total = sum(lag.lag for lag in lags)
    if as_json:
        print_json({"lag": total, "queues": rows, "consumers": consumers})
        return
    print_rows(rows, as_json=False)
    click.echo(f"lag: {total}")
    click.echo(f"consumers: {', '.join(consumers) or 'none'}")


@group.command(epilog=example("ropeway group delete kitchen --yes"))
@click.argument("name")
@yes_option
@name_server_option
def delete(name: str, yes: bool, name_server: str) -> None:
    """Delete a group with its offsets."""
    if not yes:
        click.confirm(f"Delete group {name} with its offsets?", abort=True)

    async def remove() -> None:
        async with Admin(name_server) as admin:
            if name not in await admin.groups():
                raise CannotError(f"there is no group {name}")
            await admin.delete_group(name)

    run(remove())
    click.echo(f"group {name} deleted")
