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

from gateway import on_pulsar
from gateway.config import ConfigError, read_named
from gateway.extras import package
from gateway.node import attributes, names
from gateway.node.node import now_ms
from gateway.node.patience import keep_doing
from routing.api import NoRoutesError
from routing.embedded import EmbeddedRoutes
from storage import private
from storage.api import LogError
from storage.compaction.log import CompactedLog
from storage.compaction.settings import CompactionSettings
from storage.file import FileLog, FileLogSettings, open_log, open_offsets
from storage.tiered import compression
from storage.tiered.log import open_log as open_tier
from storage.tiered.providers import open_provider
from storage.tiered.settings import TieredSettings

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from gateway.config import Config, TierConfig
    from gateway.node.held import SharedLog
    from gateway.pulsar_config import PulsarConfig
    from routing.api import RouteStore
    from storage.api import Log
    from storage.compacting import Compaction, Describer
    from storage.native import Converter
    from storage.offsets import Offsets
    from storage.state import Deposed, State
    from storage.tiered.log import TieredLog

log = structlog.get_logger(__name__)

_ZOOKEEPER = "zookeeper://"
_EXPIRE_EVERY_S = 10.0
_WINDOW_MS = 86_400_000
"""A day: seldom, and well before what is kept for three."""
_WINDOWS_KEPT = 3
"""Of so many, retention must leave all: a node may be down for one of them."""


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
    window_ms: int = _WINDOW_MS
    """What waits longer is stored anew after so long, before retention takes it."""


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
    if config.routes is not None and config.routes.startswith(_ZOOKEEPER):
        return await _open_zookeeper(config.routes, config)
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
    if config.routes is not None and config.routes.startswith(_ZOOKEEPER):
        try:
            return await _open_zookeeper(config.routes, config, make=False)
        except NoRoutesError:
            return None
    return _look_at_file(Path(config.routes or config.data / "routes.db"))


def _look_at_file(path: Path) -> RouteStore | None:
    return EmbeddedRoutes(path) if path.exists() else None


async def _open_zookeeper(url: str, config: Config, *, make: bool = True) -> RouteStore:
    zookeeper = package("routing.zookeeper", "zookeeper")
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
        if config.tier is not None:
            raise ConfigError(
                "tier is given, and pulsar; allowed: one of them, for Pulsar offloads "
                "old messages by itself (pulsar-admin namespaces set-offload-policies)"
            )
        return await _open_pulsar(
            config, config.pulsar, node, stack, deposed, converter, describer, routes
        )
    return await _open_files(config, stack, describer, routes)


async def _open_files(
    config: Config,
    stack: AsyncExitStack,
    describer: Describer,
    routes: RouteStore | None,
) -> Storage:
    private.root(config.data)
    files = open_log(config.data / "log", _file_settings(config))
    stack.push_async_callback(files.close)
    tier = None
    if config.tier is not None:
        tier = await _open_tier(config, config.tier, files, routes)
        stack.push_async_callback(tier.close)
        tier.start()
    message_log = CompactedLog(
        tier or files,
        config.data / "compaction",
        _compaction_settings(config),
        describer,
        files.need,
        now_ms,
    )
    stack.push_async_callback(message_log.close)
    message_log.start()
    offsets = open_offsets(config.data)
    stack.push_async_callback(offsets.close)
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
    return Storage(message_log, offsets, message_log, found)


async def _open_tier(
    config: Config, given: TierConfig, files: FileLog, routes: RouteStore | None
) -> TieredLog:
    try:
        settings = TieredSettings(
            level=given.level,
            commit_records=given.commit_messages,
            commit_bytes=given.commit_bytes,
            commit_ms=given.commit_ms,
            segment_bytes=given.segment_bytes,
            buffer_bytes=given.buffer_bytes,
            lag_bytes=given.lag_bytes,
            upload_bytes_per_s=given.upload_bytes_per_s,
            retention_ms=(
                None
                if given.retention_hours is None
                else int(given.retention_hours * 3_600_000)
            ),
            compression=given.compression,
            cache_bytes=given.cache_bytes,
            read_ahead_bytes=given.read_ahead_bytes,
            backfill=given.backfill,
        )
    except ValueError as error:
        raise ConfigError(f"tier: {error}") from error
    if complaint := compression.complaint(given.compression):
        raise ConfigError(f"tier: {complaint}")
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
    pulsar = package("storage.pulsar", "pulsar")
    # Before Pulsar is asked what there is: what routes have by then must be there.
    owner = None if routes is None else await on_pulsar.owner(config, routes)
    message_log = await pulsar.open_log(
        on_pulsar.settings(config, given),
        prepare=given.prepare,
        owner=owner,
        converter=converter,
    )
    stack.push_async_callback(message_log.close)
    message_log.compaction.start(describer, config.compaction.dirty_ratio)
    state = await message_log.open_state(config.broker, node, deposed)
    stack.push_async_callback(state.close)
    offsets = pulsar.PulsarOffsets(state)
    kept_ms = await message_log.retention_ms()
    window_ms = _WINDOW_MS
    if kept_ms is not None:
        window_ms = min(window_ms, kept_ms // _WINDOWS_KEPT)
    return Storage(
        message_log,
        offsets,
        message_log.compaction,
        [],
        state,
        message_log,
        window_ms,
    )


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
            kept_ms=dict.fromkeys(
                (names.TIMER_TOPIC, names.POP_TOPIC), _WINDOWS_KEPT * _WINDOW_MS
            ),
            on_damage=given.on_damage,
            in_flight_bytes=limits.waiting_bytes,
            wait_ms=limits.send_wait_ms,
        )
    except ValueError as error:
        raise ConfigError(f"log: {error}") from error


def _compaction_settings(config: Config) -> CompactionSettings:
    given = config.compaction
    return CompactionSettings(
        dirty_ratio=given.dirty_ratio,
        min_lag_ms=given.min_lag_ms,
        max_lag_ms=given.max_lag_ms,
        tombstone_ms=int(given.tombstone_hours * 3_600_000),
        keyless_ms=int(config.log.retention_hours * 3_600_000),
        map_bytes=given.map_bytes,
        file_bytes=config.log.segment_bytes,
        bytes_per_s=given.bytes_per_s,
    )


async def _expire(files: FileLog, tier: TieredLog | None) -> None:
    """Delete what retention has given up; not before a tier has it."""
    keep_from = None if tier is None else tier.dispatcher.safe_position
    try:
        await files.expire(now_ms(), keep_from)
    except LogError as error:
        log.warning("retention failed", reason=str(error))
