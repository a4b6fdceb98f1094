"""`ropeway serve`: run a node until it is told to stop."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import click
import msgspec
import structlog

from ropeway.gateway import addresses, logs
from ropeway.gateway.app import App
from ropeway.gateway.balance.setup import balancing
from ropeway.gateway.cli.examples import example
from ropeway.gateway.cli.failures import reported
from ropeway.gateway.config_file import load, parse_address, parse_listener, parse_topic
from ropeway.gateway.grpc.setup import messaging
from ropeway.gateway.http.exporter import exporting
from ropeway.gateway.http.setup import site
from ropeway.gateway.process import run, settled, stop_on_signal
from ropeway.gateway.supervisor import supervise
from ropeway.gateway.worker import Endpoint, Listening, Orders
from ropeway.gateway.workers import refuse_workers_data, sites, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.gateway.config import Config

log = structlog.get_logger(__name__)

_HINT = """\
Point a client at name server {address}, for example
  Java:   producer.setNamesrvAddr("{address}");
  Python: ropeway.client.Producer("{address}", "my-group")
  shell:  ropeway produce my-topic hello --name-server {quoted}"""


class _Options(TypedDict):
    """What the options of a start say; None or nothing where they are not given."""

    data: str | None
    listen: tuple[str, ...]
    http: str | None
    flush: str | None
    broker: str | None
    node: str | None
    pulsar: str | None
    pulsar_admin: str | None
    adopt: str | None
    routes: str | None
    cluster: str | None
    tls_cert: str | None
    tls_key: str | None
    grpc: bool
    no_auto_create: bool
    migrate_from: str | None
    topics: tuple[str, ...]


@click.command(
    epilog=example(
        "ropeway serve --data ./data --listen 127.0.0.1:9876",
        "ropeway serve --config ropeway.toml --flush sync",
        "ropeway serve --data ./data --listen 127.0.0.1:9876 --workers 4",
        "ropeway serve --pulsar pulsar://127.0.0.1:6650 "
        "--pulsar-admin http://127.0.0.1:8080 "
        "--routes zookeeper://127.0.0.1:2181/ropeway",
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
    "--http",
    metavar="HOST:PORT",
    help="Where to serve the web page, /metrics and health; nowhere by default.",
)
@click.option(
    "--flush",
    type=click.Choice(["async", "sync"]),
    help="Acknowledge when the system has a message, or when the disk has it.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Run N brokers, each a process with ports and data of its own.",
)
@click.option("--broker", help="The broker's name in routes.")
@click.option("--node", help="This node's name among those of its broker.")
@click.option(
    "--pulsar",
    metavar="URL",
    help="Keep messages on Pulsar: pulsar://HOST:PORT; with --pulsar-admin.",
)
@click.option("--pulsar-admin", metavar="URL", help="Pulsar's admin REST.")
@click.option(
    "--adopt",
    metavar="ID|empty|replica",
    help="Take a namespace of Pulsar that was refused: of that cluster, empty, or in "
    "another Pulsar cluster.",
)
@click.option(
    "--routes",
    metavar="URL",
    help="Share routes: zookeeper://HOST:PORT,HOST:PORT/PATH, or a file.",
)
@click.option("--cluster", help="The cluster's name.")
@click.option("--tls-cert", help="Certificate chain, PEM; with --tls-key.")
@click.option("--tls-key", help="The certificate's private key, PEM.")
@click.option("--grpc", is_flag=True, help="Serve gRPC clients too, on every listener.")
@click.option("--no-auto-create", is_flag=True, help="Topics are not made by sending.")
@click.option(
    "--migrate-from",
    metavar="HOST:PORT",
    help="Lead clients to that name server's brokers for topics not taken over yet.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME[:QUEUES]",
    help="Create this topic at the start, with 8 queues if not given, where it is "
    "missing. Several times if wanted.",
)
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
    workers: int | None,
    log_level: logs.Level,
    log_format: logs.Format,
    ready_file: Path | None,
    **given: Unpack[_Options],
) -> None:
    """Run a node until SIGTERM or Ctrl-C; a second one ends it at once.

    What is not given comes from the file, and then from the defaults.
    """
    logs.configure(log_level, log_format)
    with reported():
        config = _with_advertised(load(config_file, _settings(given)))
        if workers is None:
            refuse_workers_data(config)
            run(_serve(config, ready_file))
        else:
            configs = split(config, workers)
            ports = sites(configs)
            orders = [Orders(one, log_level, log_format, ports) for one in configs]
            run(_supervise(orders, ready_file))


def _settings(given: _Options) -> dict[str, Any]:
    """The command line in the form of the file."""
    settings: dict[str, Any] = {
        "data": given["data"],
        "broker": given["broker"],
        "node": given["node"],
        "cluster": given["cluster"],
        "routes": given["routes"],
        "pulsar": _given(
            {
                "service_url": given["pulsar"],
                "admin_url": given["pulsar_admin"],
                "adopt": given["adopt"],
            }
        )
        or None,
        "http": parse_address(given["http"]) if given["http"] else None,
        "listeners": [parse_listener(text) for text in given["listen"]] or None,
        "log": {"flush": given["flush"]} if given["flush"] else None,
        "topics": _given(
            {
                "auto_create": False if given["no_auto_create"] else None,
                "create": dict(map(parse_topic, given["topics"])) or None,
            }
        )
        or None,
        "migration": _given({"name_server": given["migrate_from"]}) or None,
        "grpc": given["grpc"] or None,
        "tls": _given({"certificate": given["tls_cert"], "key": given["tls_key"]})
        or None,
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


async def _serve(config: Config, ready_file: Path | None) -> None:
    stop = stop_on_signal()
    async with (
        App(config) as app,
        messaging(app),
        exporting(app),
        balancing(app),
        site(app) as address,
    ):
        endpoints = [
            Endpoint(one.host, one.port, one.advertised) for one in app.server.listeners
        ]
        settled()
        _announce([Listening(endpoints, app.found, address)], ready_file)
        await app.run(stop)
        log.info("stopping")
    log.info("stopped")


async def _supervise(orders: Sequence[Orders], ready_file: Path | None) -> None:
    await supervise(orders, stop_on_signal(), partial(_announce, ready_file=ready_file))


def _announce(nodes: Sequence[Listening], ready_file: Path | None) -> None:
    for node in nodes:
        for line in node.recovered:
            click.echo(line)
    lines = [
        f"listening on {_address(one.host, one.port)} advertised as {one.advertised}"
        for node in nodes
        for one in node.endpoints
    ]
    if ready_file is not None:
        # Who waits for the file finds all of it in it.
        new = ready_file.with_name(f"{ready_file.name}.new")
        new.write_text("\n".join(lines) + "\n", encoding="utf-8")
        new.replace(ready_file)
    click.echo("\n".join(lines))
    for node in nodes:
        if node.site is not None:
            click.echo(f"page, metrics and health at {node.site}")
    # Any of them answers for all; a client that knows them all can lose some.
    name_servers = ";".join(node.endpoints[0].advertised for node in nodes)
    click.echo(_HINT.format(address=name_servers, quoted=shlex.quote(name_servers)))


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
