"""`ropeway demo`: a gateway, a message there and back, and the end."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import click

from ropeway.client import ConsumeFrom, Message, Producer, PullConsumer
from ropeway.gateway import logs
from ropeway.gateway.app import App
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import CannotError, reported
from ropeway.gateway.config import Config, ListenerConfig

_TOPIC = "demo"
_TIMEOUT_S = 30.0


@click.command(epilog=example("ropeway demo"))
def demo() -> None:
    """Start a gateway in a temporary directory; send and receive a message."""
    logs.configure("warning", "text")
    with reported(), tempfile.TemporaryDirectory(prefix="ropeway-demo-") as directory:
        asyncio.run(_demo(Path(directory)))


async def _demo(directory: Path) -> None:
    config = Config(data=directory, listeners=(ListenerConfig(port=0),))
    async with App(config) as app:
        address = app.server.listeners[0].advertised
        click.echo(f"gateway: listening on {address}")
        async with Producer(address, "demo-producer") as producer:
            sent = await producer.send(Message(_TOPIC, b"hello from Ropeway"))
        click.echo(
            f"sent:     'hello from Ropeway' to topic {_TOPIC}, "
            f"queue {sent.queue.queue_id}, offset {sent.queue_offset}"
        )
        consumer = PullConsumer(
            address, "demo-consumer", consume_from=ConsumeFrom.FIRST_OFFSET
        )
        consumer.subscribe(_TOPIC)
        async with consumer:
            received = await consumer.poll(_TIMEOUT_S)
        if not received:
            raise CannotError(f"the message did not come back within {_TIMEOUT_S:g} s")
        click.echo(f"received: {received[0].body.decode()!r} ({received[0].msg_id})")
    click.echo("gateway: stopped")
