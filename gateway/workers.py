"""What each of several workers is given: a name, ports and a directory of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import structlog

from ropeway.gateway.config import Config, ConfigError, HttpConfig, ListenerConfig

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

log = structlog.get_logger(__name__)

_LAST_PORT = 65535


def broker_name(config: Config, number: int) -> str:
    """The name of a worker's broker: `broker-0` and `broker` both give `broker-1`."""
    return f"{config.broker.removesuffix('-0')}-{number}"


def split(config: Config, count: int) -> list[Config]:
    """The configurations of so many workers.

    Worker k listens on each port + k, keeps its data in the directory of
    its broker's name, and shares the routes.

    Raises:
        ConfigError: Ports collide or run out, or the directory, or the log, is that of
            one node.
    """
    if config.replication_num is not None:
        raise ConfigError(
            "replication_num is for single nodes; with workers, give the nodes that "
            "are to share brokers the same `broker`"
        )
    if config.log.url is not None:
        raise ConfigError(
            f"log.url is {config.log.url}, which is one node's; allowed: no workers"
        )
    data = config.data
    if (data / "log").exists():
        first = data / broker_name(config, 0)
        raise ConfigError(
            f"{data} has the log of a single node; to go on with workers, move "
            f"{data / 'log'} and {data / 'offsets.db'} to {first}"
        )
    _refuse_collisions(config, count)
    number = count
    while _is_used(data / broker_name(config, number)):
        log.warning(
            "messages of a worker that is not started cannot be read",
            data=str(data / broker_name(config, number)),
        )
        number += 1
    return [_worker(config, number) for number in range(count)]


def sites(configs: Sequence[Config]) -> dict[str, int]:
    """The ports of workers' sites by their brokers; none where any is taken."""
    return {one.broker: one.http.port for one in configs if one.http and one.http.port}


def refuse_workers_data(config: Config) -> None:
    """See that a single node does not start beside the logs of workers.

    Raises:
        ConfigError: It would.
    """
    first = config.data / broker_name(config, 0)
    if _is_used(first):
        raise ConfigError(
            f"{config.data} has the logs of workers ({first}); allowed: --workers"
        )


def _is_used(directory: Path) -> bool:
    return (directory / "log").exists()


def _worker(config: Config, number: int) -> Config:
    name = broker_name(config, number)
    return msgspec.structs.replace(
        config,
        broker=name,
        data=config.data / name,
        routes=config.routes or str(config.data / "routes.db"),
        node=f"{config.node}-{number}" if config.node else None,
        listeners=tuple(_moved(one, number) for one in config.listeners),
        http=_moved_site(config.http, number),
    )


def _moved_site(site: HttpConfig | None, by: int) -> HttpConfig | None:
    if site is None or not site.port:
        return site
    return msgspec.structs.replace(site, port=site.port + by)


def _moved(listener: ListenerConfig, by: int) -> ListenerConfig:
    shown = listener.advertised_port
    return msgspec.structs.replace(
        listener,
        port=listener.port + by if listener.port else 0,
        advertised_port=shown + by if shown else shown,
    )


def _refuse_collisions(config: Config, count: int) -> None:
    taken: dict[tuple[str, int], ListenerConfig] = {}
    for listener in (*config.listeners, *_site_as_listener(config)):
        if listener.port == 0:
            continue
        last = max(listener.port, listener.advertised_port or 0) + count - 1
        if last > _LAST_PORT:
            raise ConfigError(
                f"worker {count - 1} would have port {last}; allowed: to {_LAST_PORT}"
            )
        for port in range(listener.port, listener.port + count):
            other = taken.setdefault((listener.host, port), listener)
            if other is not listener:
                raise ConfigError(
                    f"listeners {listener.host}:{other.port} and {listener.port} both "
                    f"need port {port}; allowed: {count} ports each, one a worker"
                )


def _site_as_listener(config: Config) -> list[ListenerConfig]:
    """The site takes ports likewise."""
    site = config.http
    return [ListenerConfig(site.host, site.port)] if site is not None else []
