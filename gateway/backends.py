"""What a configuration keeps messages, offsets and routes on: opened, and closed again.

The only file that knows which logs and route stores there are.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

import structlog

from ropeway.common.clock import now_ms
from ropeway.gateway import on_pulsar
from ropeway.gateway.config import ConfigError, read_named
from ropeway.gateway.embedded import (
    WINDOW_MS,
    WINDOWS_KEPT,
    compaction_settings,
    file_settings,
    tier_settings,
)
from ropeway.gateway.extras import load_plugin, package
from ropeway.gateway.node import attributes, names
from ropeway.gateway.node.backoff import keep_doing
from ropeway.routing.api import NoRoutesError
from ropeway.routing.embedded import EmbeddedRoutes
from ropeway.storage import private
from ropeway.storage.api import LogError
from ropeway.storage.compaction.log import CompactedLog
from ropeway.storage.compaction.round import CompactionContext
from ropeway.storage.file import FileLog, open_log, open_offsets
from ropeway.storage.state import never
from ropeway.storage.tiered.log import open_log as open_tier
from ropeway.storage.tiered.providers import open_provider

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AsyncExitStack

    from ropeway.gateway.config import Config, TierConfig
    from ropeway.gateway.node.shared_partitions import SharedLog
    from ropeway.gateway.pulsar_config import PulsarConfig
    from ropeway.routing.api import OpenRoutes, RouteStore
    from ropeway.storage.api import Log
    from ropeway.storage.compaction.log import Need
    from ropeway.storage.compaction_api import Compaction, Describer
    from ropeway.storage.native import Converter
    from ropeway.storage.offsets import Offsets
    from ropeway.storage.plugin_api import OpenLog
    from ropeway.storage.state import Deposed, State
    from ropeway.storage.tiered.log import TieredLog

log = structlog.get_logger(__name__)

_ZOOKEEPER = "zookeeper"
_ROUTES, _LOGS = "ropeway.routes", "ropeway.logs"
"""The groups of entry points of plugins that are route stores, and logs."""
_EXPIRE_EVERY_S = 10.0


class Storage(NamedTuple):
    """Where messages and offsets are kept."""

    log: Log
    offsets: Offsets
    compaction: Compaction
    """What the log does for topics of which the last message of each key counts."""
    found: list[str]
    """What opening it came upon, a line for people each."""
    state: State | None = None
    """What the nodes of a broker share; None where there is one node."""
    shared_log: SharedLog | None = None
    """The log, where they share that."""
    window_ms: int = WINDOW_MS
    """What waits longer is stored anew after so long, before retention takes it."""
    adopted: Sequence[str] = ()
    """Namespaces of Pulsar that were taken because the configuration says so."""


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


def index_directory(config: Config, node: str, name: str) -> Path:
    """Where a node keeps an index: a cache, and no two nodes' is one."""
    directory = config.data / name
    private.narrow(directory)  # it may be opened late
    if is_shared(config):
        directory /= quote(f"{config.broker}@{node}", safe="@")
    return directory


async def open_routes(config: Config) -> RouteStore:
    """Open the route store of a configuration.

    Raises:
        ConfigError: A setting cannot be used.
        RouteError: It cannot be opened, or is none.
        OSError: Its directory cannot be made.
    """
    if config.routes is not None and "://" in config.routes:
        return await _open_url(config.routes, config, make=True)
    path = Path(config.routes or config.data / "routes.db")
    private.database(path)
    routes = EmbeddedRoutes(path)
    if config.routes is not None:
        routes.follow()
    return routes


async def look_at_routes(config: Config) -> RouteStore | None:
    """Open the route store of a configuration; None where there is none yet.

    Raises:
        ConfigError: A setting cannot be used.
        RouteError: It cannot be opened, or is none.
    """
    if config.routes is not None and "://" in config.routes:
        try:
            return await _open_url(config.routes, config, make=False)
        except NoRoutesError:
            return None
    return _look_at_file(Path(config.routes or config.data / "routes.db"))


def _look_at_file(path: Path) -> RouteStore | None:
    return EmbeddedRoutes(path) if path.exists() else None


async def _open_url(url: str, config: Config, *, make: bool) -> RouteStore:
    scheme = url.partition(":")[0]
    if scheme == _ZOOKEEPER:
        return await _open_zookeeper(url, config, make=make)
    opening: OpenRoutes = load_plugin(_ROUTES, scheme, "routes", _ZOOKEEPER)
    return await opening(url, make=make)


async def _open_zookeeper(url: str, config: Config, *, make: bool) -> RouteStore:
    zookeeper = package("ropeway.routing.zookeeper", "zookeeper")
    given = config.zookeeper
    tls = None
    if given.ca_certificate is not None:
        tls = zookeeper.Tls(
            ca=given.ca_certificate, certificate=given.certificate, key=given.key
        )
    file = given.password_file
    password = read_named(file, "zookeeper.password_file") if file else ""
    routes: RouteStore = await zookeeper.open_routes(
        url,
        zookeeper.ZooKeeperSettings(
            session_s=given.session_ms / 1000,
            user=given.user,
            password=password,
            tls=tls,
        ),
        make=make,
    )
    return routes


async def open_storage(
    config: Config,
    node: str,
    stack: AsyncExitStack,
    deposed: Deposed,
    converter: Converter | None,
    describer: Describer,
    routes: RouteStore | None = None,
) -> Storage:
    """Open the log and the offsets of a configuration.

    Args:
        config: Says where they are.
        node: Which node of its broker this is.
        stack: What ends them goes on it.
        deposed: Called with why, when another node has taken this one's place.
        converter: Of messages in topics that are shared with the log's own clients.
        describer: Of messages in topics that are compacted.
        routes: Tell how long topics want to be kept on a provider, and which cluster
            this is.

    Raises:
        ConfigError: A setting cannot be used.
        LogError: They cannot be opened.
        RouteError: The cluster's id cannot be kept.
        OSError: A file cannot be read, or a directory cannot be made.
    """
    if config.pulsar is not None:
        if config.log.url is not None:
            raise ConfigError(
                f"pulsar is given, and log.url is {config.log.url}; "
                "allowed: one of them"
            )
        if config.tier is not None:
            raise ConfigError(
                "tier is given, and pulsar; allowed: one of them, for Pulsar offloads "
                "old messages by itself (pulsar-admin namespaces set-offload-policies)"
            )
        return await _open_pulsar(
            config, config.pulsar, node, stack, deposed, converter, describer, routes
        )
    if config.log.url is not None:
        return await _open_plugin(config, config.log.url, stack, describer)
    return await _open_files(config, stack, describer, routes)


async def _open_files(
    config: Config,
    stack: AsyncExitStack,
    describer: Describer,
    routes: RouteStore | None,
) -> Storage:
    private.root(config.data)
    files = open_log(config.data / "log", file_settings(config))
    stack.push_async_callback(files.close)
    tier = None
    if config.tier is not None:
        tier = await _open_tier(config, config.tier, files, routes)
        stack.push_async_callback(tier.close)
        tier.start()
    storage = _with_compaction(tier or files, files.need, config, stack, describer)
    expire = partial(_expire, files, tier)
    expiry = asyncio.get_running_loop().create_task(
        keep_doing("retention", _EXPIRE_EVERY_S, expire)
    )
    stack.callback(expiry.cancel)
    found = [
        f"recovered: {dropped.bytes} bytes at the end of the log were not whole; "
        f"they are kept in {dropped.file}"
        for dropped in files.recovery.dropped
    ]
    return storage._replace(found=found)


async def _open_plugin(
    config: Config, url: str, stack: AsyncExitStack, describer: Describer
) -> Storage:
    """Open a log that is a plugin, for the one node that has it."""
    if config.tier is not None:
        raise ConfigError(
            f"tier is given, and log.url is {url}; allowed: one of them, for only what "
            "the embedded log has is copied to a tier"
        )
    opening: OpenLog = load_plugin(_LOGS, config.log_name, "log.url")
    private.root(config.data)
    inner = await opening(url)
    stack.push_async_callback(inner.close)
    return _with_compaction(inner, inner.need, config, stack, describer)


def _with_compaction(
    inner: Log, need: Need, config: Config, stack: AsyncExitStack, describer: Describer
) -> Storage:
    """Put compaction before the log of one node, and open the offsets beside it."""
    message_log = CompactedLog(
        inner,
        config.data / "compaction",
        need,
        CompactionContext(compaction_settings(config), describer, now_ms),
    )
    stack.push_async_callback(message_log.close)
    message_log.start()
    offsets = open_offsets(config.data)
    stack.push_async_callback(offsets.close)
    return Storage(message_log, offsets, message_log, [])


async def _open_tier(
    config: Config, given: TierConfig, files: FileLog, routes: RouteStore | None
) -> TieredLog:
    settings = tier_settings(given, config.log)
    # Brokers may have one bucket: each gets a folder.
    parts = urlsplit(given.url)
    path = f"{parts.path.rstrip('/')}/{quote(config.broker, safe='')}"
    url = urlunsplit(parts._replace(path=path))

    def reserve_ms(topic: str) -> int | None:
        known = routes.topics.get(topic) if routes is not None else None
        return None if known is None else attributes.reserve_ms(known.attributes)

    def wants(topic: str) -> bool:
        known = routes.topics.get(topic) if routes is not None else None
        return not (
            # What compaction leaves of it is small, and stays here.
            (known is not None and attributes.is_compacted(known.attributes))
            or names.is_system_topic(topic)
            or topic.startswith(names.RETRY_PREFIX)
            or names.reserved_complaint(topic, config.cluster, config.broker)
        )

    return await open_tier(
        files,
        open_provider(url),
        config.data / "tier",
        settings,
        wants=wants,
        reserve_ms=reserve_ms,
    )


async def _open_pulsar(
    config: Config,
    given: PulsarConfig,
    node: str,
    stack: AsyncExitStack,
    deposed: Deposed,
    converter: Converter | None,
    describer: Describer,
    routes: RouteStore | None,
) -> Storage:
    pulsar = package("ropeway.storage.pulsar", "pulsar")
    # Before Pulsar is asked what there is: what routes have by then must be there.
    owner = None if routes is None else await on_pulsar.owner(config, routes)
    message_log = await pulsar.open_log(
        on_pulsar.settings(config, given),
        prepare=given.prepare,
        owner=owner,
        converter=converter,
    )
    stack.push_async_callback(message_log.close)
    if routes is not None:
        await on_pulsar.keep_pulsar_id(routes, message_log.pulsar_id)
        await on_pulsar.find_generations(routes, message_log.generations)
    message_log.compaction.start(describer, config.compaction.dirty_ratio)
    held = never if routes is None else lambda: routes.held_until_s
    state = await message_log.open_state(config.broker, node, deposed, held)
    stack.push_async_callback(state.close)
    offsets = pulsar.PulsarOffsets(state)
    kept_ms = await message_log.retention_ms()
    window_ms = WINDOW_MS
    if kept_ms is not None:
        window_ms = min(window_ms, kept_ms // WINDOWS_KEPT)
    return Storage(
        message_log,
        offsets,
        message_log.compaction,
        [],
        state,
        message_log,
        window_ms,
        owner.adopted if owner is not None else (),
    )


async def _expire(files: FileLog, tier: TieredLog | None) -> None:
    """Delete what retention has given up; not before a tier has it."""
    keep_from = None if tier is None else tier.dispatcher.safe_position
    try:
        await files.expire(now_ms(), keep_from)
    except LogError as error:
        log.warning("retention failed", reason=str(error))
