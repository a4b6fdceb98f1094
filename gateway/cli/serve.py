"""`ropeway serve`: run a node until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
import structlog

from gateway import addresses, logs
from gateway.app import App
from gateway.cli.examples import example
from gateway.cli.failures import reported
from gateway.config_file import load, parse_listener

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from gateway.config import Config

log = structlog.get_logger(__name__)

_HINT = """\
Point a client at name server {address}, for example
  Java:   producer.setNamesrvAddr("{address}");
  Python: ropeway.client.Producer("{address}", "my-group")
  shell:  ropeway produce my-topic hello --name-server {address}"""


@click.command(
    epilog=example(
        "ropeway serve --data ./data --listen 127.0.0.1:9876",
        "ropeway serve --config ropeway.toml --flush sync",
    )
)
@click.option(
    "--config", "config_file", type=click.Path(path_type=Path), help="TOML file."
)
@click.option("--data", help="Directory for everything that is kept.")
@click.option(
    "--listen",
    multiple=True,
    metavar="HOST:PORT[=HOST:PORT]",
    help="Where to listen, and what to tell clients. Several times if wanted.",
)
@click.option(
    "--flush",
    type=click.Choice(["async", "sync"]),
    help="Acknowledge when the system has a message, or when the disk has it.",
)
@click.option("--broker", help="The broker's name in routes.")
@click.option("--cluster", help="The cluster's name.")
@click.option("--tls-cert", help="Certificate chain, PEM; with --tls-key.")
@click.option("--tls-key", help="The certificate's private key, PEM.")
@click.option("--no-auto-create", is_flag=True, help="Topics are not made by sending.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Written when clients can come: a line for each listener.",
)
def serve(
    config_file: Path | None,
    log_level: logs.Level,
    log_format: logs.Format,
    ready_file: Path | None,
    **given: Any,
) -> None:
    """Run a node until SIGTERM or Ctrl-C; a second one ends it at once.

    What is not given comes from the file, and then from the defaults.
    """
    logs.configure(log_level, log_format)
    with reported():
        config = _with_advertised(load(config_file, _settings(**given)))
        _run(_serve(config, ready_file))


def _settings(
    *,
    data: str | None,
    listen: tuple[str, ...],
    flush: str | None,
    broker: str | None,
    cluster: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    no_auto_create: bool,
) -> dict[str, Any]:
    """The command line in the form of the file."""
    settings: dict[str, Any] = {
        "data": data,
        "broker": broker,
        "cluster": cluster,
        "listeners": [parse_listener(text) for text in listen] or None,
        "log": {"flush": flush} if flush else None,
        "topics": {"auto_create": False} if no_auto_create else None,
        "tls": _given({"certificate": tls_cert, "key": tls_key}) or None,
    }
    return _given(settings)


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}


def _with_advertised(config: Config) -> Config:
    """Give listeners on every address one that clients can be told."""
    listeners = []
    for listener in config.listeners:
        if addresses.is_everywhere(listener):
            host = addresses.outgoing(listener.host)
            log.warning(
                "clients are told an address that was chosen for them",
                listener=f"{listener.host}:{listener.port}",
                advertised_host=host,
                way_out="--listen HOST:PORT=ADVERTISED_HOST:PORT",
            )
            listeners.append(msgspec.structs.replace(listener, advertised_host=host))
        else:
            listeners.append(listener)
    return msgspec.structs.replace(config, listeners=tuple(listeners))


def _run(work: Coroutine[None, None, None]) -> None:
    """Run on uvloop where there is one."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        pass
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)


async def _serve(config: Config, ready_file: Path | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, partial(_stop, loop, stop))
    async with App(config) as app:
        _announce(app, ready_file)
        await stop.wait()
        log.info("stopping")
    log.info("stopped")


def _announce(app: App, ready_file: Path | None) -> None:
    for dropped in app.recovery.dropped:
        click.echo(
            f"recovered: {dropped.bytes} bytes at the end of the log were not whole; "
            f"they are kept in {dropped.file}"
        )
    listeners = app.server.listeners
    lines = [
        f"listening on {_address(one.host, one.port)} advertised as {one.advertised}"
        for one in listeners
    ]
    if ready_file is not None:
        ready_file.write_text("\n".join(lines) + "\n")
    click.echo("\n".join(lines))
    click.echo(_HINT.format(address=listeners[0].advertised))


def _stop(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    stop.set()
    # Whoever asks a second time does not want to wait.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
