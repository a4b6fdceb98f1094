"""One of several nodes, in a process that the supervisor starts.

It gets its orders as one line of JSON on stdin and reports in one line on stdout. It
ends on SIGTERM, and when stdin ends, since then its supervisor is no more.
"""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog

from ropeway.gateway import logs, process
from ropeway.gateway.app import App
from ropeway.gateway.balance.setup import balancing
from ropeway.gateway.config import Config, ConfigError
from ropeway.gateway.errors import ServerError
from ropeway.gateway.grpc.setup import messaging
from ropeway.gateway.http.exporter import exporting
from ropeway.gateway.http.setup import site
from ropeway.routing.api import RouteError
from ropeway.storage.api import LogError, LogForeignError

log = structlog.get_logger(__name__)

_STDIN = 0
_REFUSALS = (ConfigError, LogError, OSError, RouteError, ServerError)


class Orders(msgspec.Struct, frozen=True):
    """What a worker is to do."""

    config: Config
    log_level: logs.Level
    log_format: logs.Format
    sites: dict[str, int] = {}
    """The ports of all workers' sites, as far as they are known, by their brokers."""


class Endpoint(msgspec.Struct, frozen=True):
    """Where a worker listens, and what it tells clients."""

    host: str
    port: int
    advertised: str


class Listening(msgspec.Struct, frozen=True, tag=True):
    """Clients can come."""

    endpoints: list[Endpoint]
    recovered: list[str]
    """What opening the log came upon, for people."""
    site: str | None = None
    """Where its web page is, if it has one."""
    incarnation: str = ""
    """Which process it is, of all that ever have its node's name."""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """It could not start."""

    reason: str
    foreign: bool = False
    """Whether that is since the log is another cluster's, or lost."""


def dump_orders(orders: Orders) -> bytes:
    """Orders as a line."""
    return msgspec.json.encode(orders, enc_hook=str) + b"\n"


def load_orders(line: bytes) -> Orders:
    """Orders from a line."""
    return msgspec.json.decode(line, type=Orders, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    assert kind is Path, "nothing else is written as text"
    return Path(value)


def dump_report(report: Listening | Failed) -> bytes:
    """A report as a line."""
    return msgspec.json.encode(report) + b"\n"


def load_report(line: bytes) -> Listening | Failed:
    """A report from a line."""
    return msgspec.json.decode(line, type=Listening | Failed)


def main() -> None:
    """Work as ordered."""
    orders = load_orders(sys.stdin.buffer.readline())
    logs.configure(orders.log_level, orders.log_format, orders.config.broker)
    try:
        process.run(_work(orders))
    except _REFUSALS as error:
        _report(Failed(str(error), isinstance(error, LogForeignError)))
        sys.exit(1)


async def _work(orders: Orders) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in process.ENDING:
        # Any number of times: a service manager may tell every process to end, and
        # then the supervisor tells it too.
        loop.add_signal_handler(number, stop.set)
    loop.add_reader(_STDIN, partial(_orphaned, stop))
    async with (
        App(orders.config) as app,
        messaging(app),
        exporting(app),
        balancing(app),
        site(app, orders.sites) as address,
    ):
        endpoints = [
            Endpoint(one.host, one.port, one.advertised) for one in app.server.listeners
        ]
        process.settled()
        _report(Listening(endpoints, app.found, address, app.incarnation))
        await app.run(stop)
        log.info("stopping")
    log.info("stopped")


def _orphaned(stop: asyncio.Event) -> None:
    if os.read(_STDIN, 1):
        return
    if stop.is_set():
        # It was stopping already, and whoever waited for that no longer does.
        os._exit(1)
    log.warning("the supervisor is gone")
    asyncio.get_running_loop().remove_reader(_STDIN)
    stop.set()


def _report(report: Listening | Failed) -> None:
    sys.stdout.buffer.write(dump_report(report))
    sys.stdout.buffer.flush()
