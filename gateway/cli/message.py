"""`ropeway message`: find stored messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gateway.cli.clients import json_option, name_server_option, run
from gateway.cli.examples import example
from gateway.cli.failures import CannotError
from gateway.cli.output import message_row, print_message
from ropeway.client import Admin

if TYPE_CHECKING:
    from ropeway.client import ReceivedMessage


@click.group(epilog=example("ropeway message query orders order-7"))
def message() -> None:
    """Find stored messages."""


@message.command(
    epilog=example("ropeway message view 7F000001000026940000000000000007")
)
@click.argument("offset_msg_id")
@click.option("--topic", help="Its topic, where it is known.")
@name_server_option
@json_option
def view(
    offset_msg_id: str, topic: str | None, name_server: str, as_json: bool
) -> None:
    """Print the message that an offset message id names."""

    async def read() -> ReceivedMessage:
        async with Admin(name_server) as admin:
            return await admin.view(offset_msg_id, topic)

    _print(run(read()), as_json=as_json)


@message.command(
    epilog=example(
        "ropeway message query orders order-7",
        "ropeway message query orders 7F00000100002694000000000000000A --unique",
    )
)
@click.argument("topic")
@click.argument("key")
@click.option("--unique", is_flag=True, help="KEY is a message id from a producer.")
@click.option("--count", type=click.IntRange(1), default=32, show_default=True)
@name_server_option
@json_option
def query(
    topic: str, key: str, unique: bool, count: int, name_server: str, as_json: bool
) -> None:
    """Print the messages of TOPIC that have KEY."""

    async def find() -> list[ReceivedMessage]:
        async with Admin(name_server) as admin:
            return await admin.query(
                topic, key, max_messages=count, is_unique_key=unique
            )

    found = run(find())
    if not found:
        raise CannotError(f"topic {topic} has no message with key {key}")
    for one in found:
        _print(one, as_json=as_json)


def _print(found: ReceivedMessage, *, as_json: bool) -> None:
    if as_json:
        print_message(found, "", as_json=True)
        return
    for name, value in message_row(found).items():
        click.echo(f"{name}: {value}")
    for name, value in sorted(found.properties.items()):
        click.echo(f"property {name}: {value}")
    click.echo()
