"""Asking brokers and name servers on an administrator's behalf.

Source: MQClientAPIImpl.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.client.base import Client
from ropeway.client.config import ClientConfig
from ropeway.client.errors import BrokerNotFoundError, ConnectionFailedError
from ropeway.client.instance import Instance
from ropeway.client.routes import MASTER_ID
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    CreateGroup,
    CreateTopic,
    DeleteGroup,
    DeleteTopic,
)
from ropeway.gateway.wire.commands.namesrv import GetBrokerClusterInfo

if TYPE_CHECKING:
    from collections.abc import Collection

    from ropeway.client.connection import Response
    from ropeway.client.connections import Connections
    from ropeway.client.routes import Route
    from ropeway.gateway.wire.frame import Buffer
    from ropeway.gateway.wire.header import Header

MAKING_TIMEOUT_S = 60.0
"""For requests that make or delete: a topic may have 1,024 queues, and Pulsar makes and
deletes each of them."""

_MAKING = (CreateTopic, DeleteTopic, CreateGroup, DeleteGroup)


class AskingClient(Client):
    """A client that asks, and neither produces nor consumes.

    Args:
        name_server: `host:port`, several joined by semicolons.
        config: Times and limits.
        connections: What carries the requests; connections of its own by default.
    """

    def __init__(
        self,
        name_server: str,
        *,
        config: ClientConfig | None = None,
        connections: Connections | None = None,
    ) -> None:
        super().__init__(
            Instance(name_server, config or ClientConfig(), connections=connections)
        )
        self._instance.routes.own_only = True

    @property
    def config(self) -> ClientConfig:
        """How the client is set up."""
        return self._instance.config

    async def ask(
        self,
        address: str,
        header: Header,
        body: Buffer = b"",
        *,
        timeout_s: float | None = None,
        expect: Collection[int] = (ResponseCode.SUCCESS,),
    ) -> Response:
        """Ask one server.

        Args:
            address: Which one, as `host:port`.
            header: The request.
            body: Its body.
            timeout_s: The longest to wait; by default as long as the configuration
                says, and `MAKING_TIMEOUT_S` for what makes or deletes.
            expect: Response codes that are no error to the caller.

        Raises:
            ResponseError: It refused.
            RemotingError: It cannot be reached.
        """
        self._instance.ensure_started()
        if timeout_s is None and isinstance(header, _MAKING):
            timeout_s = max(MAKING_TIMEOUT_S, self._instance.config.request_timeout_s)
        return await self._instance.connections.request(
            address, header, body, timeout_s=timeout_s, expect=expect
        )

    async def ask_masters(
        self,
        header: Header,
        body: Buffer = b"",
        *,
        expect: Collection[int] = (ResponseCode.SUCCESS,),
    ) -> list[Response]:
        """Ask every broker's master, one after the other.

        Raises:
            ResponseError: One refused; others may have done it.
            RemotingError: A server cannot be reached.
        """
        return [
            await self.ask(address, header, body, expect=expect)
            for address in await self.masters()
        ]

    async def route(self, topic: str) -> Route:
        """A topic's queues and their brokers, as the name servers have them now.

        Raises:
            TopicNotFoundError: There is no such topic.
            RemotingError: No name server answers.
        """
        self._instance.ensure_started()
        return await self._instance.routes.fetch(topic)

    async def ask_of_topic(
        self,
        topic: str,
        header: Header,
        *,
        expect: Collection[int] = (ResponseCode.SUCCESS,),
    ) -> dict[str, Response]:
        """Ask the master of each broker that has a topic; the answers by their names.

        Raises:
            TopicNotFoundError: There is no such topic.
            ResponseError: A broker refused; others may have done it.
            RemotingError: A server cannot be reached.
        """
        route = await self.route(topic)
        return {
            name: await self.ask(
                self._instance.routes.master(name), header, expect=expect
            )
            for name in sorted(route.brokers)
        }

    async def ask_broker(
        self,
        broker: str,
        header: Header,
        body: Buffer = b"",
        *,
        expect: Collection[int] = (ResponseCode.SUCCESS,),
    ) -> Response:
        """Ask the master of one broker.

        Raises:
            BrokerNotFoundError: There is no such broker, or it has no master now.
            ResponseError: It refused.
            RemotingError: A server cannot be reached.
        """
        try:
            address = self._instance.routes.master(broker)
        except ConnectionFailedError:
            # No topic has led us there yet.
            address = await self._master(broker)
        return await self.ask(address, header, body, expect=expect)

    async def _master(self, broker: str) -> str:
        table = (await self.cluster_info()).broker_addr_table
        if broker not in table:
            names = ", ".join(sorted(table))
            raise BrokerNotFoundError(f"there is no broker {broker}; there are {names}")
        address = table[broker].broker_addrs.get(str(MASTER_ID))
        if address is None:
            raise BrokerNotFoundError(f"broker {broker} has no master now; try again")
        return address

    async def ask_name_server(self, header: Header) -> Response:
        """Ask the name servers, each in turn until one answers.

        Raises:
            ResponseError: It refused.
            RemotingError: None of them can be reached.
        """
        self._instance.ensure_started()
        return await self._instance.routes.ask(header)

    async def masters(self) -> list[str]:
        """The addresses of all brokers' masters, sorted.

        Raises:
            RemotingError: No name server answers.
        """
        info = await self.cluster_info()
        nodes = (broker.broker_addrs for broker in info.broker_addr_table.values())
        return sorted({at[str(MASTER_ID)] for at in nodes if str(MASTER_ID) in at})

    async def cluster_info(self) -> bodies.ClusterInfo:
        """Every broker with the addresses of its nodes, and the clusters.

        Raises:
            RemotingError: No name server answers.
        """
        response = await self.ask_name_server(GetBrokerClusterInfo())
        return response.json(bodies.ClusterInfo)
