"""The one place that builds the parts of a node, joins them, and takes them apart."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

import msgspec
import structlog

import gateway.processors.all  # noqa: F401 - registers every processor
from gateway import backends
from gateway.config import ConfigError
from gateway.node import membership
from gateway.node.clients import Clients
from gateway.node.forwarder import Forwarder
from gateway.node.groups import Groups
from gateway.node.held import Held
from gateway.node.holds import Holds
from gateway.node.leadership import Leadership, NoLeaderError
from gateway.node.locks import QueueLocks
from gateway.node.native import Native
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
from storage.api import LogUnavailableError

if TYPE_CHECKING:
    import ssl

    from gateway.config import Config
    from gateway.node.leadership import Duty
    from gateway.node.topics import ServedTopic
    from routing.api import RouteStore

log = structlog.get_logger(__name__)

_SETTLE_ATTEMPTS = 3
_KNOW_OTHERS_EVERY_S = 1.0
_DISK_READS = 64
"""Pulls, of up to 4 MiB each, that may wait for the disk at the same time."""


class App:
    """A running node with its endpoints.

    Use it as an asynchronous context manager: it listens from entry to exit.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._node_name = backends.node_name(config)
        self._stack = AsyncExitStack()
        self.server: Server
        self.node: Node
        self.found: list[str]
        """What opening the log came upon, a line for people each."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self.node = await self._build(stack)
            leadership = self.node.leadership
            tls = self._config.tls
            self.server = Server(
                self.node,
                self._tls(),
                tls_required=tls is not None and tls.required,
            )
            if backends.is_shared(self._config):
                await self._open(stack)
                # Before clients hear of it, and while requests still find their way.
                stack.push_async_callback(leadership.close)
                leadership.contest()
                await self._settle()
            else:
                stack.push_async_callback(leadership.close)
                await leadership.lead()
                await self._open(stack)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _open(self, stack: AsyncExitStack) -> None:
        """Listen, and say so in the routes."""
        await self.server.open()
        stack.push_async_callback(self.server.close, self._config.shutdown_ms / 1000)
        await self._announce()
        stack.push_async_callback(self._withdraw)

    async def _settle(self) -> None:
        """Wait until it is known who leads the broker.

        Raises:
            LogError: Nobody does for long.
        """
        for attempt in reversed(range(_SETTLE_ATTEMPTS)):
            try:
                await self.node.leadership.settle()
            except NoLeaderError as error:
                if not attempt:
                    raise LogUnavailableError(str(error)) from error
            else:
                return

    async def _announce(self) -> None:
        config = self._config
        addresses = tuple(one.advertised for one in self.server.listeners)
        await self.node.routes.put_broker(
            Broker(
                name=config.broker,
                node=self._node_name,
                cluster=config.cluster,
                addresses=addresses,
                pid=os.getpid(),
            )
        )

    async def _withdraw(self) -> None:
        # Before the server closes: clients go elsewhere, if there is anywhere.
        try:
            await self.node.routes.remove_broker(self._config.broker, self._node_name)
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
        routes = await backends.open_routes(config)
        stack.push_async_callback(routes.close)
        if config.replication_num is not None:
            broker = await membership.join(
                routes, self._node_name, config.broker, config.replication_num
            )
            self._config = config = msgspec.structs.replace(config, broker=broker)
        suffix = properties.dump(
            {
                properties.MSG_REGION: config.region,
                properties.TRACE_ON: "true",
                properties.CLUSTER: config.cluster,
            }
        )
        native = Native(config.broker, routes, suffix, self._store_host)
        storage = await backends.open_storage(
            config, self._node_name, stack, self._deposed, native
        )
        message_log, offsets, self.found, state, shared_log = storage
        topics = Topics(config, routes, message_log, len(levels_ms))
        holds = Holds(config.limits.held_pulls)

        def forget(topic: ServedTopic) -> None:
            for partition in topic.partitions:
                holds.release(partition)
            if not topics.follows:
                offsets.forget(topic=topic.name)
            elif shared_log is not None:
                shared_log.forget(topic.name)

        topics.watch_deleted(forget)
        schedule = Schedule(levels_ms, topics, offsets, message_log)
        clients = Clients(now_ms, notify_consumer_ids_changed)
        duties: list[Duty] = [topics, holds, schedule, clients]
        proofs = []
        if state is None:
            duties.insert(1, TakenBack(offsets, topics))
        else:
            if shared_log is not None:
                held = duties[0] = Held(shared_log, topics, holds)
                # A node begins as a slave.
                await held.give_up()
                await clients.give_up()
            duties.insert(0, state)
            proofs = [lambda: state.held_until_s, lambda: routes.held_until_s]
        leadership = Leadership(config.broker, self._node_name, routes, duties, proofs)
        forwarder = Forwarder(config.limits.frame_bytes, None)
        stack.push_async_callback(forwarder.close)
        if config.routes is not None:
            watching = asyncio.get_running_loop().create_task(
                _know_others(forwarder, routes, config.broker)
            )
            stack.callback(watching.cancel)
        return Node(
            config=config,
            leadership=leadership,
            forwarder=forwarder,
            log=message_log,
            offsets=offsets,
            routes=routes,
            topics=topics,
            groups=Groups(config, routes),
            clients=clients,
            locks=QueueLocks(now_ms, state),
            holds=holds,
            schedule=schedule,
            unique_keys=UniqueKeys(),
            our_name=b'"n":' + msgspec.json.encode(config.broker),
            property_suffix=suffix,
            region_json=msgspec.json.encode(config.region),
            tasks=set(),
            disk_reads=asyncio.Semaphore(_DISK_READS),
            started_ms=now_ms(),
        )

    def _store_host(self) -> bytes:
        return self.server.listeners[0].packed_advertised

    def _deposed(self, reason: str) -> None:
        log.warning("another node has taken over", reason=reason)
        self.node.leadership.deposed()

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
