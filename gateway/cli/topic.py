"""`ropeway topic`: make, change, look at and delete topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gateway.cli.clients import json_option, name_server_option, run, yes_option
from gateway.cli.examples import example
from gateway.cli.failures import CannotError
from gateway.cli.output import print_rows
from gateway.node.names import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from ropeway.client import Admin

if TYPE_CHECKING:
    from ropeway.client import QueueSpan

queues_option = click.option(
    "--queues", type=click.IntRange(1, 1024), help="Queues on each broker."
)
perm_option = click.option(
    "--perm",
    type=click.Choice(["2", "4", "6"]),
    help="2: only sending, 4: only reading, 6: both.",
)

_DEFAULT_QUEUES = 8
_DEFAULT_PERM = "6"


@click.group(epilog=example("ropeway topic create orders --queues 16"))
def topic() -> None:
    """Make, change, look at and delete topics."""


@topic.command(epilog=example("ropeway topic create orders --queues 16"))
@click.argument("name")
@queues_option
@perm_option
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    metavar="NAME=VALUE",
    help="What it is like, such as entry.format=PULSAR; may be given several times.",
)
@name_server_option
def create(
    name: str,
    queues: int | None,
    perm: str | None,
    attributes: tuple[str, ...],
    name_server: str,
) -> None:
    """Make a topic that is not there yet, with 8 queues by default."""
    pairs = (one.partition("=")[::2] for one in attributes)

    async def make() -> None:
        async with Admin(name_server) as admin:
            if name in await admin.topics():
                raise CannotError(f"topic {name} is there already")
            await admin.create_topic(
                name,
                queues or _DEFAULT_QUEUES,
                perm=int(perm or _DEFAULT_PERM),
                attributes=dict(pairs),
            )

    run(make())
    click.echo(f"topic {name} created")


@topic.command(epilog=example("ropeway topic update orders --queues 32"))
@click.argument("name")
@queues_option
@perm_option
@name_server_option
def update(name: str, queues: int | None, perm: str | None, name_server: str) -> None:
    """Change a topic; what is not given stays as it is.

    With fewer queues than before, the messages in the others stay and are not read.
    """

    async def change() -> None:
        async with Admin(name_server) as admin:
            for config in await admin.topic_configs(name):
                await admin.create_topic(
                    name,
                    queues or config.write_queue_nums,
                    perm=int(perm) if perm else config.perm,
                    order=config.order,
                )

    run(change())
    click.echo(f"topic {name} updated")


@topic.command("list", epilog=example("ropeway topic list"))
@click.option(
    "--all", "everything", is_flag=True, help="Also those that are not users'."
)
@name_server_option
@json_option
def list_(everything: bool, name_server: str, as_json: bool) -> None:
    """Print the names of all topics."""

    async def names() -> list[str]:
        async with Admin(name_server) as admin:
            clusters = await admin.clusters()
            known = {
                *clusters,
                *(broker for one in clusters.values() for broker in one),
            }
            return [
                name
                for name in await admin.topics()
                if everything or not (name in known or _is_derived(name))
            ]

    print_rows([{"topic": name} for name in run(names())], as_json=as_json)


def _is_derived(name: str) -> bool:
    return is_system_topic(name) or name.startswith((RETRY_PREFIX, DLQ_PREFIX))


@topic.command(epilog=example("ropeway topic describe orders"))
@click.argument("name")
@name_server_option
@json_option
def describe(name: str, name_server: str, as_json: bool) -> None:
    """Print what each queue of a topic holds."""

    async def spans() -> list[QueueSpan]:
        async with Admin(name_server) as admin:
            return await admin.describe_topic(name)

    rows = [
        {
            "broker": span.queue.broker_name,
            "queue": span.queue.queue_id,
            "begin": span.begin,
            "end": span.end,
            "messages": span.end - span.begin,
        }
        for span in run(spans())
    ]
    print_rows(rows, as_json=as_json)


@topic.command(epilog=example("ropeway topic delete orders --yes"))
@click.argument("name")
@yes_option
@name_server_option
def delete(name: str, yes: bool, name_server: str) -> None:
    """Delete a topic with its messages and every group's offsets in it."""
    if not yes:
        click.confirm(f"Delete topic {name} with all its messages?", abort=True)

    async def remove() -> None:
        async with Admin(name_server) as admin:
            if name not in await admin.topics():
                raise CannotError(f"there is no topic {name}")
            await admin.delete_topic(name)

    run(remove())
    click.echo(f"topic {name} deleted")
