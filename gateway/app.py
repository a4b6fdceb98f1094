"""The one place that builds the parts of a node, joins them, and takes them apart."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

import msgspec
import structlog

import gateway.processors.all  # noqa: F401 - registers every processor
from gateway.config import ConfigError
from gateway.node.clients import Clients
from gateway.node.forwarder import Forwarder
from gateway.node.groups import Groups
from gateway.node.holds import Holds
from gateway.node.leadership import Leadership
from gateway.node.locks import QueueLocks
from gateway.node.node import Node, now_ms
from gateway.node.progress import TakenBack
from gateway.node.schedule import Schedule, parse_levels
from gateway.node.topics import Topics
from gateway.node.unique_keys import UniqueKeys
from gateway.processors.callbacks import notify_consumer_ids_changed
from gateway.server import Server
from gateway.tls import server_context
from gateway.wire import properties
from routing.api import Broker, RouteError
from routing.embedded import EmbeddedRoutes
from storage.api import LogError
from storage.file import FileLog, FileLogSettings, open_log, open_offsets

if TYPE_CHECKING:
    import ssl

    from gateway.config import Config
    from gateway.node.topics import ServedTopic
    from routing.api import RouteStore
    from storage.file.recovery import Recovery

log = structlog.get_logger(__name__)

_EXPIRE_EVERY_S = 10.0
_KNOW_OTHERS_EVERY_S = 1.0
_DISK_READS = 64
"""Pulls, of up to 4 MiB each, that may wait for the disk at the same time."""


class App:
    """A running node with its endpoints.

    Use it as an asynchronous context manager: it listens from entry to exit.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._stack = AsyncExitStack()
        self.server: Server
        self.node: Node
        self.recovery: Recovery
        """What opening the log came upon."""

    def recovered(self) -> list[str]:
        """What opening the log came upon, a line for people each."""
        return [
            f"recovered: {dropped.bytes} bytes at the end of the log were not whole; "
            f"they are kept in {dropped.file}"
            for dropped in self.recovery.dropped
        ]

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self.node = await self._build(stack)
            tls = self._config.tls
            self.server = Server(
                self.node,
                self._tls(),
                tls_required=tls is not None and tls.required,
            )
            stack.push_async_callback(self.node.leadership.close)
            await self.node.leadership.lead()
            await self.server.open()
            stack.push_async_callback(
                self.server.close, self._config.shutdown_ms / 1000
            )
            await self._announce()
            stack.push_async_callback(self._withdraw)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _announce(self) -> None:
        config = self._config
        addresses = tuple(one.advertised for one in self.server.listeners)
        await self.node.routes.put_broker(
            Broker(
                name=config.broker,
                node=config.broker,
                cluster=config.cluster,
                addresses=addresses,
                pid=os.getpid(),
            )
        )

    async def _withdraw(self) -> None:
        # Before the server closes: clients go elsewhere, if there is anywhere.
        try:
            await self.node.routes.remove_broker(
                self._config.broker, self._config.broker
            )
        except RouteError as error:
            log.warning(
                "clients are told for seconds of a broker that ends",
                broker=self._config.broker,
                reason=str(error),
            )

    async def _build(self, stack: AsyncExitStack) -> Node:
        config = self._config
        try:
            levels_ms = parse_levels(config.delay_levels)
        except ValueError as error:
            raise ConfigError(f"delay_levels: {error}") from error
        config.data.mkdir(parents=True, exist_ok=True)
        message_log = open_log(config.data / "log", _log_settings(config))
        stack.push_async_callback(message_log.close)
        self.recovery = message_log.recovery
        offsets = open_offsets(config.data)
        stack.push_async_callback(offsets.close)
        routes = open_routes(config)
        stack.push_async_callback(routes.close)
        if config.routes is not None:
            routes.follow()
        topics = Topics(config, routes, message_log, len(levels_ms))
        holds = Holds(config.limits.held_pulls)

        def forget(topic: ServedTopic) -> None:
            for partition in topic.partitions:
                holds.release(partition)
            offsets.forget(topic=topic.name)

        topics.watch_deleted(forget)
        schedule = Schedule(levels_ms, topics, offsets, message_log)
        leadership = Leadership(
            config.broker,
            config.broker,
            routes,
            [topics, TakenBack(offsets, topics), holds, schedule],
        )
        forwarder = Forwarder(config.limits.frame_bytes, None)
        stack.push_async_callback(forwarder.close)
        if config.routes is not None:
            watching = asyncio.get_running_loop().create_task(
                _know_others(forwarder, routes, config.broker)
            )
            stack.callback(watching.cancel)
        expiry = asyncio.get_running_loop().create_task(_expire(message_log))
        stack.callback(expiry.cancel)
        return Node(
            config=config,
            leadership=leadership,
            forwarder=forwarder,
            log=message_log,
            offsets=offsets,
            routes=routes,
            topics=topics,
            groups=Groups(config, routes),
            clients=Clients(now_ms, notify_consumer_ids_changed),
            locks=QueueLocks(now_ms),
            holds=holds,
            schedule=schedule,
            unique_keys=UniqueKeys(),
            property_suffix=properties.dump(
                {
                    properties.MSG_REGION: config.region,
                    properties.TRACE_ON: "true",
                    properties.CLUSTER: config.cluster,
                }
            ),
            region_json=msgspec.json.encode(config.region),
            tasks=set(),
            disk_reads=asyncio.Semaphore(_DISK_READS),
            started_ms=now_ms(),
        )

    def _tls(self) -> ssl.SSLContext | None:
        tls = self._config.tls
        if tls is None:
            return None
        try:
            return server_context(tls)
        except OSError as error:
            raise ConfigError(
                f"tls: {tls.certificate} and {tls.key} cannot be used: {error}"
            ) from error


def open_routes(config: Config) -> EmbeddedRoutes:
    """Open the route store of a configuration.

    Raises:
        RouteError: It cannot be opened, or is none.
        OSError: Its directory cannot be made.
    """
    path = config.routes or config.data / "routes.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    return EmbeddedRoutes(path)


def _log_settings(config: Config) -> FileLogSettings:
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


async def _know_others(forwarder: Forwarder, routes: RouteStore, ours: str) -> None:
    """Keep at hand who leads the other brokers.

    Requests that name them come here from clients whose routes are old, or that know
    one address for several nodes.
    """
    while True:
        brokers = routes.brokers
        forwarder.others = {
            name: nodes[0] for name, nodes in brokers.items() if name != ours
        }
        await asyncio.sleep(_KNOW_OTHERS_EVERY_S)


async def _expire(message_log: FileLog) -> None:
    """Delete what retention has given up, now and then."""
    while True:
        await asyncio.sleep(_EXPIRE_EVERY_S)
        try:
            await message_log.expire(now_ms())
        except LogError as error:
            log.warning("retention failed", reason=str(error))
