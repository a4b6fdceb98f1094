"""Routes of the cluster that a migration comes from, asked of its name servers.

Its answers are handed out as they came, and kept for so short a time that clients of
both see a change there at about the same time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ropeway.client.config import ClientConfig
from ropeway.client.connections import Connections
from ropeway.client.credentials import Credentials
from ropeway.client.errors import RemotingError
from ropeway.client.routes import Routes
from ropeway.gateway.config import ConfigError, read_named
from ropeway.gateway.node.source_sends import (
    ANY_CODE,
    SEND_S,
    SourceRoute,
    SourceSends,
    masters,
    queues_of,
)
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import AsyncExitStack

    from ropeway.client.connection import Response
    from ropeway.gateway.topics_config import MigrationConfig
    from ropeway.gateway.wire.header import Header

ANSWER_S = 2.0
"""All name servers together; clients wait 3 s for us."""
KEPT_S = 1.0
"""How old an answer may get; clients themselves keep one for 30 s."""


class SourceError(Exception):
    """The source does not say where a topic is; the text says why."""


class SourceRoutes:
    """What the source's name servers say.

    Args:
        name_server: `host:port`, several joined by semicolons.
        config: TLS and credentials.
    """

    def __init__(self, name_server: str, config: ClientConfig) -> None:
        self._name_server = name_server
        each_s = ANSWER_S / len(name_server.split(";"))
        config = msgspec.structs.replace(
            config, connect_timeout_s=each_s, request_timeout_s=each_s
        )
        self._connections = Connections(config, lambda _: None)
        self._servers = Routes(name_server, self._connections)
        self.sends = SourceSends(self, self._connections)
        self._asked: dict[str, asyncio.Task[SourceRoute | None]] = {}
        """Questions under way, and answers that are kept."""

    async def find(self, topic: str, ours: Collection[str]) -> SourceRoute | None:
        """Return where the source has a topic; None where it has none of that name.

        Args:
            topic: Its name.
            ours: The names of this cluster's brokers.

        Raises:
            SourceError: It does not say, or has brokers named like ours.
        """
        found = await asyncio.shield(self._asked.get(topic) or self._begin(topic))
        if found is not None:
            both = {one.broker_name for one in found.route.broker_datas} & set(ours)
            if both:
                raise SourceError(
                    f"broker {min(both)} is at the migration's source "
                    f"{self._name_server} and here; allowed: brokers of other names"
                )
        return found

    async def queues(self, topic: str, ours: Collection[str]) -> int:
        """Return how many queues the source has of a topic, on all its brokers.

        Raises:
            SourceError: As of `find`.
        """
        found = await self.find(topic, ours)
        return len(queues_of(topic, found.route)) if found is not None else 0

    async def ask(self, broker: str, header: Header, wait_s: float) -> Response:
        """Ask a broker of the source; its answer, whatever that says.

        Args:
            broker: Its name.
            header: The request.
            wait_s: How long it may wait for messages.

        Raises:
            RemotingError: It did not answer.
            SourceError: Nobody says where it is.
        """
        # Each broker has a topic named like itself.
        found = await self.find(broker, ())
        address = masters(found.route).get(broker) if found is not None else None
        if address is None:
            raise SourceError(
                f"the migration's source {self._name_server} has no master of broker "
                f"{broker:.100}"
            )
        return await self._connections.request(
            address, header, timeout_s=SEND_S + wait_s, expect=ANY_CODE
        )

    def _begin(self, topic: str) -> asyncio.Task[SourceRoute | None]:
        loop = asyncio.get_running_loop()
        task = self._asked[topic] = loop.create_task(self._ask(topic))

        def keep(done: asyncio.Task[SourceRoute | None]) -> None:
            # Whoever has just made a topic is told so at once. And whoever asked may be
            # gone: an error is seen here.
            kept_s = 0.0 if done.cancelled() or _is_nowhere(done) else KEPT_S
            loop.call_later(kept_s, self._asked.pop, topic, None)

        task.add_done_callback(keep)
        return task

    async def _ask(self, topic: str) -> SourceRoute | None:
        header = GetRouteInfo(
            topic=topic, accept_standard_json_only=True, own_only=True
        )
        try:
            answer = await self._servers.ask(
                header, expect=(ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST)
            )
            if answer.code == ResponseCode.TOPIC_NOT_EXIST:
                return None
            return SourceRoute(answer.body, answer.json(bodies.TopicRoute))
        except RemotingError as error:
            raise SourceError(
                f"the migration's source {self._name_server} does not say where topic "
                f"{topic:.200} is: {error}"
            ) from error

    async def close(self) -> None:
        """End what is under way, and close all connections."""
        for task in self._asked.values():
            task.cancel()
        await self._connections.close()


def _is_nowhere(done: asyncio.Task[SourceRoute | None]) -> bool:
    return done.exception() is None and done.result() is None


def opened(
    config: MigrationConfig | None, stack: AsyncExitStack
) -> SourceRoutes | None:
    """Return what asks a migration's source, until the stack closes it.

    Raises:
        ConfigError: Its credentials or files for TLS cannot be used.
    """
    if config is None:
        return None
    source = SourceRoutes(config.name_server, _client_config(config))
    stack.push_async_callback(source.close)
    return source


def _client_config(config: MigrationConfig) -> ClientConfig:
    if (config.access_key is None) != (config.secret_key_file is None):
        raise ConfigError(
            "migration.access_key and migration.secret_key_file go together"
        )
    credentials = None
    if config.access_key is not None and config.secret_key_file is not None:
        secret = read_named(config.secret_key_file, "migration.secret_key_file")
        credentials = Credentials(access_key=config.access_key, secret_key=secret)
    try:
        tls = config.tls.context() if config.tls is not None else None
    except ValueError as error:
        raise ConfigError(f"migration.tls: {error}") from error
    return ClientConfig(
        tls=tls,
        tls_server_name=config.tls.server_name if config.tls is not None else None,
        credentials=credentials,
    )
