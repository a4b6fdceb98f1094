"""A node from start to end: storage, parts, endpoints, and its place in the routes."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

import msgspec
import structlog

import ropeway.gateway.processors.all  # noqa: F401 - registers every processor
from ropeway.common.reasons import reason_of
from ropeway.gateway import backends, extras, secret_files
from ropeway.gateway.composition import Builder, property_suffix
from ropeway.gateway.config import ConfigError, TlsConfig
from ropeway.gateway.node import membership
from ropeway.gateway.node.leadership import NoLeaderError
from ropeway.gateway.node.message_keys import MessageKeys
from ropeway.gateway.node.native import Native
from ropeway.gateway.pipes import ALPN
from ropeway.gateway.server import Server
from ropeway.gateway.tls import Certificates
from ropeway.routing.api import Broker, NameTakenError, RouteError
from ropeway.storage import private
from ropeway.storage.api import LogUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ropeway.gateway.config import Config
    from ropeway.gateway.node.node import Node
    from ropeway.routing.api import RouteStore

log = structlog.get_logger(__name__)

_POWER_LOSS = {
    "async": "may take what was acknowledged in the last half second",
    "sync": "takes nothing that was acknowledged",
}
"""What a loss of power does in each flush mode of the embedded log."""
_SELF_SIGNED = "self-signed.pem"
"""In the node's directory: a key, and its certificate."""

_SETTLE_ATTEMPTS = 3
_PROCESSORS = "ropeway.processors"
"""The group of entry points of plugins with processors."""


class App:
    """A running node with its endpoints.

    Use it as an asynchronous context manager: it listens from entry to exit.
    """

    def __init__(self, config: Config) -> None:
        extras.load_plugins(_PROCESSORS)
        self._config = config
        self.node_name = backends.node_name(config)
        """Which of its broker's nodes this is."""
        self.incarnation = secrets.token_hex(8)
        """Which of all processes that ever have that name."""
        self._name_lost: asyncio.Future[str]
        self._stack = AsyncExitStack()
        self.server: Server
        self.node: Node
        self.certificates: Certificates | None
        """What it shows on TLS connections; None where it offers none."""
        self.found: list[str]
        """What opening the log came upon, a line for people each."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self.node = await self._build(stack)
            leadership = self.node.leadership
            tls = self._config.tls
            self.certificates = self._read_certificates()
            self.server = Server(
                self.node,
                self.certificates,
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

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until told to stop.

        Raises:
            NameTakenError: Another process has this node's name for good.
        """
        flush = self._config.log.flush
        if not backends.is_shared(self._config) and self._config.log.url is None:
            log.info("serving", flush=flush, power_loss=_POWER_LOSS[flush])
        stopped = asyncio.ensure_future(stop.wait())
        self._name_lost.add_done_callback(lambda _: stopped.cancel())
        try:
            await asyncio.wait([stopped])
        finally:
            stopped.cancel()
        if not stop.is_set():
            raise NameTakenError(self._name_lost.result())

    def _lose_name(self, reason: str) -> None:
        if not self._name_lost.done():
            self._name_lost.set_result(reason)

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
        self._name_lost = asyncio.get_running_loop().create_future()
        self.node.routes.watch_names(self._lose_name)
        addresses = tuple(one.advertised for one in self.server.listeners)
        await self.node.routes.put_broker(
            Broker(
                name=config.broker,
                node=self.node_name,
                cluster=config.cluster,
                addresses=addresses,
                pid=os.getpid(),
                incarnation=self.incarnation,
            )
        )

    async def _withdraw(self) -> None:
        # Before the server closes: clients go elsewhere, if there is anywhere.
        try:
            await self.node.routes.remove_broker(
                self._config.broker, self.node_name, self.incarnation
            )
        except RouteError as error:
            log.warning(
                "clients are told for seconds of a broker that ends",
                broker=self._config.broker,
                reason=str(error),
            )

    async def _build(self, stack: AsyncExitStack) -> Node:
        routes = await self._join(stack)
        config = self._config
        native = Native(
            config.broker, routes, property_suffix(config), self._store_host
        )
        storage = await backends.open_storage(
            config, self.node_name, stack, self._deposed, native, MessageKeys(), routes
        )
        self.found = storage.found
        builder = Builder(
            *(config, self.node_name, self.incarnation),
            *(routes, storage, self._store_host),
        )
        return await builder.build(stack)

    async def _join(self, stack: AsyncExitStack) -> RouteStore:
        """Open the routes, which may say which broker this node is of."""
        config = self._config
        routes = await backends.open_routes(config)
        stack.push_async_callback(routes.close)
        # Only now: a file of routes of its own was taken from others just then.
        secret_files.check(config)
        if config.replication_num is not None:
            broker = await membership.join(
                routes, self.node_name, config.broker, config.replication_num
            )
            self._config = msgspec.structs.replace(config, broker=broker)
        return routes

    def _store_host(self) -> bytes:
        return self.server.listeners[0].packed_advertised

    def _deposed(self, reason: str) -> None:
        log.warning("another node has taken over", reason=reason)
        self.node.leadership.deposed()

    def _read_certificates(self) -> Certificates | None:
        protocols = [ALPN] if self._config.grpc else []
        tls = self._config.tls
        if tls is None:
            return self._self_signed(protocols) if self._config.grpc else None
        try:
            return Certificates(tls, protocols)
        except OSError as error:
            raise ConfigError(
                f"tls: {tls.certificate} and {tls.key} cannot be used: "
                f"{reason_of(error)}"
            ) from error

    def _self_signed(self, protocols: Sequence[str]) -> Certificates:
        """The node's own certificate, made where it has none that can be used."""
        path = self._config.data / _SELF_SIGNED
        tls = TlsConfig(certificate=path, key=path)
        try:
            return Certificates(tls, protocols)
        except OSError:
            private.root(self._config.data)
            extras.package("ropeway.gateway.self_signed", "grpc").make(path)
            log.info("made a certificate that nobody has signed", path=str(path))
            return Certificates(tls, protocols)
