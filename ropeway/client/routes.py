"""Where topics live: asked of the name servers, kept, and asked again in time."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client.errors import (
    ConnectionFailedError,
    RemotingError,
    TopicNotFoundError,
)
from ropeway.client.message import MessageQueue
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ropeway.client.connection import Response
    from ropeway.client.connections import Connections
    from ropeway.gateway.wire.header import Header

DEFAULT_TOPIC = "TBW102"
"""Its route is given to topics that sending shall create."""

MASTER_ID = 0
PERM_READ, PERM_WRITE = 4, 2


class Route(Struct, frozen=True):
    """A topic's queues and their brokers."""

    read_queues: tuple[MessageQueue, ...]
    """Sorted."""
    write_queues: tuple[MessageQueue, ...]
    """Sorted; only of brokers that have a master."""
    brokers: dict[str, dict[int, str]]
    """Broker name to broker id (0 is the master) to address."""
    masterless: tuple[str, ...] = ()
    """Brokers that would have queues to write to, if they had a master now."""

    def writable(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues to write to, at least one.

        Raises:
            ConnectionFailedError: None of their brokers has a master now.
            TopicNotFoundError: The topic has none.
        """
        if self.write_queues:
            return self.write_queues
        if self.masterless:
            raise ConnectionFailedError(", ".join(self.masterless), "has no master")
        raise TopicNotFoundError(f"topic {topic!r} has no queue to write to")


def make_route(
    topic: str, data: bodies.TopicRoute, *, max_queues: int | None = None
) -> Route:
    """Turn a name server's answer into queues.

    Args:
        topic: The topic to name the queues by.
        data: The answer, perhaps of another topic.
        max_queues: The most that one broker's queues may number.
    """
    brokers = {
        broker.broker_name: {int(id_): at for id_, at in broker.broker_addrs.items()}
        for broker in data.broker_datas
    }
    read: list[MessageQueue] = []
    write: list[MessageQueue] = []
    masterless: list[str] = []
    for queues in data.queue_datas:
        name = queues.broker_name
        readable = _limited(queues.read_queue_nums, max_queues)
        writable = _limited(queues.write_queue_nums, max_queues)
        if queues.perm & PERM_READ:
            read += (MessageQueue(topic, name, id_) for id_ in range(readable))
        if queues.perm & PERM_WRITE and MASTER_ID in brokers.get(name, {}):
            write += (MessageQueue(topic, name, id_) for id_ in range(writable))
        elif queues.perm & PERM_WRITE and writable:
            masterless.append(name)
    return Route(
        tuple(sorted(read)), tuple(sorted(write)), brokers, tuple(sorted(masterless))
    )


def _limited(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)


class Routes:
    """Routes of all topics that a client has to do with.

    Args:
        name_server: `host:port`, several joined by semicolons.
        connections: To ask through.
        on_new_broker: Called when a route names an address that none did before.
    """

    def __init__(
        self,
        name_server: str,
        connections: Connections,
        on_new_broker: Callable[[], None] = lambda: None,
    ) -> None:
        named = (part.strip() for part in name_server.split(";"))
        self._servers = [*dict.fromkeys(filter(None, named))]
        if not self._servers:
            raise ValueError("name_server is empty; allowed: host:port[;host:port...]")
        random.shuffle(self._servers)
        self._connections = connections
        self._on_new_broker = on_new_broker
        self.own_only: bool | None = None
        """Whether to be told nothing of a migration's source: administrators are of
        the cluster that they ask."""
        self._routes: dict[str, Route] = {}
        self._brokers: dict[str, dict[int, str]] = {}
        self._borrowed: dict[str, int] = {}

    async def ask(self, header: Header, *, expect: Iterable[int] = (0,)) -> Response:
        """Ask the name servers, each in turn until one answers.

        Raises:
            ResponseError: The answer's code is not expected.
            ConnectionFailedError: None of them can be reached.
        """
        *others, last = self._servers
        for server in (*others, last):
            try:
                return await self._connections.request(
                    server, header, expect=tuple(expect)
                )
            except ConnectionFailedError:
                if self._servers[0] == server:
                    # The next request begins with another one.
                    self._servers.append(self._servers.pop(0))
                if server == last:
                    raise
        raise AssertionError("the last one has answered or failed")

    async def get(self, topic: str) -> Route:
        """The route of a topic, from memory where it is known.

        Raises:
            TopicNotFoundError: The topic does not exist.
            RemotingError: No name server answers.
        """
        return self._routes.get(topic) or await self.fetch(topic)

    async def get_or_borrow(self, topic: str, max_queues: int) -> Route:
        """The route of a topic, or the one that sending to it creates.

        Args:
            topic: The topic.
            max_queues: How many queues to give a new topic on one broker.

        Raises:
            TopicNotFoundError: It does not exist and brokers create no topics.
            RemotingError: No name server answers.
        """
        try:
            return await self.get(topic)
        except TopicNotFoundError:
            data = await self._ask_route(DEFAULT_TOPIC)
            if data is None:
                raise
            self._borrowed[topic] = max_queues
            return self._keep(topic, make_route(topic, data, max_queues=max_queues))

    async def fetch(self, topic: str) -> Route:
        """The route of a topic as the name servers have it now.

        Raises:
            TopicNotFoundError: The topic does not exist.
            RemotingError: No name server answers.
        """
        data = await self._ask_route(topic)
        if data is None:
            if topic not in self._borrowed:
                self._routes.pop(topic, None)
            raise TopicNotFoundError(f"topic {topic!r} does not exist")
        self._borrowed.pop(topic, None)
        return self._keep(topic, make_route(topic, data))

    async def refresh(self) -> None:
        """Ask anew for every topic that is known; what fails stays as it was."""
        for topic in tuple(self._routes):
            with contextlib.suppress(RemotingError):
                await self.fetch(topic)
        # Only here brokers that are in no route any more are forgotten.
        self._brokers = {}
        for route in self._routes.values():
            self._brokers |= route.brokers

    async def _ask_route(self, topic: str) -> bodies.TopicRoute | None:
        response = await self.ask(
            GetRouteInfo(
                topic=topic, accept_standard_json_only=True, own_only=self.own_only
            ),
            expect=(ResponseCode.SUCCESS, ResponseCode.TOPIC_NOT_EXIST),
        )
        if response.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        return response.json(bodies.TopicRoute)

    def _keep(self, topic: str, route: Route) -> Route:
        self._routes[topic] = route
        known = self.addresses(masters_only=False)
        self._brokers |= route.brokers
        if self.addresses(masters_only=False) - known:
            self._on_new_broker()
        return route

    def master(self, broker_name: str) -> str:
        """The address of a broker's master.

        Raises:
            ConnectionFailedError: No route names one.
        """
        try:
            return self._brokers[broker_name][MASTER_ID]
        except KeyError as error:
            raise ConnectionFailedError(broker_name, "has no master") from error

    def reader(self, broker_name: str, broker_id: int = MASTER_ID) -> tuple[int, str]:
        """The id and address of a broker to read from: the wished one, else any.

        Raises:
            ConnectionFailedError: No route names one.
        """
        nodes = self._brokers.get(broker_name)
        if not nodes:
            raise ConnectionFailedError(broker_name, "is in no route")
        chosen = broker_id if broker_id in nodes else min(nodes)
        return chosen, nodes[chosen]

    def addresses(self, *, masters_only: bool) -> set[str]:
        """The addresses of all brokers of all known topics."""
        return {
            address
            for nodes in self._brokers.values()
            for id_, address in nodes.items()
            if id_ == MASTER_ID or not masters_only
        }
