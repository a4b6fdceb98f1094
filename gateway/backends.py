"""What a configuration keeps messages, offsets and routes on: opened, and closed again.

The only file that knows which logs and route stores there are.
"""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from gateway.config import ConfigError
from gateway.node.node import now_ms
from routing.embedded import EmbeddedRoutes
from storage.api import LogError
from storage.file import FileLog, FileLogSettings, open_log, open_offsets

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from gateway.config import Config, PulsarConfig
    from gateway.node.held import SharedLog
    from routing.api import RouteStore
    from storage.api import Log
    from storage.native import Converter
    from storage.offsets import Offsets
    from storage.state import Deposed, State

log = structlog.get_logger(__name__)

_ZOOKEEPER = "zookeeper://"
_EXPIRE_EVERY_S = 10.0


class Storage(NamedTuple):
    """Where messages and offsets are kept."""

    log: Log
    offsets: Offsets
    found: list[str]
    """What opening it came upon, a line for people each."""
    state: State | None = None
    """What the nodes of a broker share; None where there is one node."""
    shared_log: SharedLog | None = None
    """The log, where they share that."""


def is_shared(config: Config) -> bool:
    """Whether several nodes may serve one broker."""
    return config.pulsar is not None


def node_name(config: Config) -> str:
    """Which node of its broker this is.

    Raises:
        ConfigError: Nothing gives it a name that is its own.
    """
    if not is_shared(config):
        if config.replication_num not in (None, 1):
            raise ConfigError(
                f"replication_num is {config.replication_num}; allowed where messages "
                "are kept on Pulsar: the embedded log has one node"
            )
        return config.broker
    if config.node:
        return config.node
    first = config.listeners[0]
    port = first.advertised_port or first.port
    if not port:
        raise ConfigError(
            "node is not given, and a listener on port 0 gives no name; "
            "allowed: any text, the same after each start"
        )
    return f"{first.advertised_host or first.host}:{port}"


async def open_routes(config: Config) -> RouteStore:
    """Open the route store of a configuration.

    Raises:
        ConfigError: A setting cannot be used.
        RouteError: It cannot be opened, or is none.
        OSError: Its directory cannot be made.
    """
    if config.routes is not None and config.routes.startswith(_ZOOKEEPER):
        return await _open_zookeeper(config.routes, config)
    path = Path(config.routes) if config.routes else config.data / "routes.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    routes = EmbeddedRoutes(path)
    if config.routes is not None:
        routes.follow()
    return routes


async def _open_zookeeper(url: str, config: Config) -> RouteStore:
    zookeeper = _extra("routing.zookeeper", "zookeeper")
    given = config.zookeeper
    tls = None
    if given.ca_certificate is not None:
        tls = zookeeper.Tls(
            ca=given.ca_certificate, certificate=given.certificate, key=given.key
        )
    password = given.password_file.read_text().strip() if given.password_file else ""
    routes: RouteStore = await zookeeper.open_routes(
        url,
        zookeeper.ZooKeeperSettings(
            session_s=given.session_ms / 1000,
            user=given.user,
            password=password,
            tls=tls,
        ),
    )
    return routes


def _extra(module: str, name: str) -> Any:
    """What needs packages that not everybody has.

    Raises:
        ConfigError: They are not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{error.name} is not installed; it comes with: pip install ropeway[{name}]"
        ) from error


async def open_storage(
    config: Config,
    node: str,
    stack: AsyncExitStack,
    deposed: Deposed,
    converter: Converter | None = None,
) -> Storage:
    """Open the log and the offsets of a configuration.

    Args:
        config: Says where they are.
        node: Which node of its broker this is.
        stack: What ends them goes on it.
        deposed: Called with why, when another node has taken this one's place.
        converter: Of messages in topics that are shared with the log's own clients.

    Raises:
        ConfigError: A setting cannot be used.
        LogError: They cannot be opened.
        OSError: A file cannot be read, or a directory cannot be made.
    """
    if config.pulsar is not None:
        return await _open_pulsar(
            config, config.pulsar, node, stack, deposed, converter
        )
    return _open_files(config, stack)


def _open_files(config: Config, stack: AsyncExitStack) -> Storage:
    config.data.mkdir(parents=True, exist_ok=True)
    message_log = open_log(config.data / "log", _file_settings(config))
    stack.push_async_callback(message_log.close)
    offsets = open_offsets(config.data)
    stack.push_async_callback(offsets.close)
    expiry = asyncio.get_running_loop().create_task(_expire(message_log))
    stack.callback(expiry.cancel)
    found = [
        f"recovered: {dropped.bytes} bytes at the end of the log were not whole; "
        f"they are kept in {dropped.file}"
        for dropped in message_log.recovery.dropped
    ]
    return Storage(message_log, offsets, found)


async def _open_pulsar(
    config: Config,
    given: PulsarConfig,
    node: str,
    stack: AsyncExitStack,
    deposed: Deposed,
    converter: Converter | None,
) -> Storage:
    pulsar = _extra("storage.pulsar", "pulsar")
    ca, token = given.ca_certificate, given.token_file
    settings = pulsar.PulsarLogSettings(
        service_url=given.service_url,
        admin_url=given.admin_url,
        token_file=str(token) if token else None,
        tls_ca_file=str(ca) if ca else None,
        tenant=given.tenant,
        namespace=given.namespace,
        namespaces=given.namespaces,
        tail_bytes=config.log.tail_cache_bytes,
        waiting_bytes=config.limits.waiting_bytes,
    )
    message_log = await pulsar.open_log(
        settings, prepare=given.prepare, converter=converter
    )
    stack.push_async_callback(message_log.close)
    state = await message_log.open_state(config.broker, node, deposed)
    stack.push_async_callback(state.close)
    offsets = pulsar.PulsarOffsets(state)
    return Storage(message_log, offsets, [], state, message_log)


def _file_settings(config: Config) -> FileLogSettings:
    given = config.log
    limits = config.limits
    try:
        return FileLogSettings(
            flush=given.flush,
            segment_bytes=given.segment_bytes,
            tail_bytes=given.tail_cache_bytes,
            retention_ms=int(given.retention_hours * 3_600_000),
            retention_bytes=given.retention_bytes,
            on_damage=given.on_damage,
            in_flight_bytes=limits.waiting_bytes,
            wait_ms=limits.send_wait_ms,
        )
    except ValueError as error:
        raise ConfigError(f"log: {error}") from error


async def _expire(message_log: FileLog) -> None:
    """Delete what retention has given up, now and then."""
    while True:
        await asyncio.sleep(_EXPIRE_EVERY_S)
        try:
            await message_log.expire(now_ms())
        except LogError as error:
            log.warning("retention failed", reason=str(error))
