"""`ropeway serve`: run a node until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import click
import msgspec
import uvloop

from gateway.app import App
from gateway.config import Config, ListenerConfig


def _listener(text: str) -> ListenerConfig:
    bind, _, advertised = text.partition("=")
    host, _, port = bind.rpartition(":")
    shown_host, _, shown_port = advertised.rpartition(":")
    return ListenerConfig(
        host=host or "127.0.0.1",
        port=int(port),
        advertised_host=shown_host or None,
        advertised_port=int(shown_port) if shown_port else None,
    )


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=Path("ropeway-data"))
@click.option("--listen", multiple=True)
@click.option("--flush", type=click.Choice(["async", "sync"]), default="async")
def serve(data: Path, listen: tuple[str, ...], flush: str) -> None:
    """Run a node.

    Example:
    \b
        $ ropeway serve --data ./data
    """
    config = Config(data=data)
    if listen:
        config = msgspec.structs.replace(
            config, listeners=tuple(_listener(text) for text in listen)
        )
    config = msgspec.structs.replace(
        config, log=msgspec.structs.replace(config.log, flush=flush)
    )
    uvloop.run(_serve(config))


async def _serve(config: Config) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with App(config) as app:
        for listener in app.server.listeners:
            click.echo(f"listening on {listener.host}:{listener.port}")
        await stop.wait()
