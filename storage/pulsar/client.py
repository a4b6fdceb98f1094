"""A client of one Pulsar cluster: its connections, and who serves which topic."""

import asyncio
import contextlib
import itertools
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

import structlog

from ropeway.common.reasons import reason_of
from ropeway.storage.pulsar.authentication import Authentication, Unauthenticated
from ropeway.storage.pulsar.commands import (
    Access,
    GetSchema,
    Lookup,
    LookupAnswer,
    LookupType,
    SchemaAnswer,
)
from ropeway.storage.pulsar.connection import Connection
from ropeway.storage.pulsar.entry import Entry, Position
from ropeway.storage.pulsar.errors import (
    ForeignPulsarError,
    PulsarError,
    PulsarUnavailableError,
    server_error,
)
from ropeway.storage.pulsar.producer import Producer, anybody
from ropeway.storage.pulsar.pulsar_log_config import KEEP_ALIVE_MS
from ropeway.storage.pulsar.reader import Reader
from ropeway.storage.pulsar.service_url import Address, ServiceUrl
from ropeway.storage.pulsar.tls import explained

if TYPE_CHECKING:
    from ropeway.storage.pulsar.pulsar_id import Expected

REDIRECTS = 20
"""How often a look-up is sent on, as in Pulsar's own clients (maxLookupRedirects)."""
CONNECT_TIMEOUT_S = 10
FOREIGN_S = 30
"""For so long a broker of another cluster is not asked again whose it is."""
NO_SCHEMA = 11
"""A broker's answer where a topic has no schema, or is not there (`TopicNotFound`)."""
LOOK_UP_TIMEOUT_S = 10
"""A broker that does not say within this who serves a topic stands still; another one
may know. Any broker can tell, and none reads the topic for it."""

_log = structlog.get_logger()


class Route(NamedTuple):
    """A connection that can be shared: to an address, and there perhaps on by proxy."""

    address: Address
    proxy_to: str | None = None


class PulsarClient:
    """Producers and readers of a cluster; one connection to each of its brokers.

    Args:
        service_url: where to ask, as in `ServiceUrl.parse`.
        authentication: who we are; asked for each connection.
        tls: whom to trust and what to show, for `pulsar+ssl`; asked for each
            connection. None: as Python does.
        listener_name: which address of brokers is meant; None: as they are set up.
        request_timeout_s: how long to wait for an answer, and for a first opening.
        keep_alive_s: between two PINGs, as `Connection` has it.

    Raises:
        ValueError: `service_url` is malformed.
    """

    def __init__(
        self,
        service_url: str,
        *,
        authentication: Authentication | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
        listener_name: str | None = None,
        request_timeout_s: float = 30,
        keep_alive_s: float = KEEP_ALIVE_MS / 1000,
    ) -> None:
        self._keep_alive_s = keep_alive_s
        self.request_timeout_s = request_timeout_s
        self._service = ServiceUrl.parse(service_url)
        self._next_address = itertools.cycle(self._service.addresses)
        self._address = next(self._next_address)
        self._authentication = authentication or Unauthenticated()
        self._tls = (tls or ssl.create_default_context) if self._service.tls else None
        self._listener_name = listener_name
        self.expected: Expected | None = None
        """What brokers of the service URL have to show; None: nothing."""
        self._foreign: dict[Address, float] = {}
        """Those that showed something else, and when each is looked at again."""
        self._told: set[Address] = set()
        """Those that people were told of."""
        self._connections: dict[Route, asyncio.Task[Connection]] = {}
        self._open: set[Producer | Reader] = set()

    @property
    def method(self) -> str:
        """Pulsar's name of the way in which we say who we are."""
        return self._authentication.method

    async def producer(
        self,
        topic: str,
        name: str,
        *,
        access: Access = Access.EXCLUSIVE_WITH_FENCING,
        lost: Callable[[PulsarError], None],
        permit: Callable[[], None] = anybody,
    ) -> Producer:
        """Open a producer.

        Args:
            topic: `persistent://tenant/namespace/topic`, not partitioned.
            name: the producer's; deduplication counts for each name.
            access: who else may write.
            lost: called once if the producer can never write again, after all its
                pending entries got the same error.
            permit: called at the moment at which the broker is first asked, each time
                that it is; raises a PulsarError where this may not write now, which is
                tried again if it is of `RETRYABLE`.

        Raises:
            PulsarError: refused, or not possible within `request_timeout_s`.
        """
        producer = Producer(self, topic, name, access, lost, permit)
        await producer.open()
        self._open.add(producer)
        return producer

    async def reader(
        self,
        topic: str,
        start: Position | Literal["earliest", "latest"] | int,
        *,
        inclusive: bool = True,
        compacted: bool = False,
        received: Callable[[Entry], None],
        lost: Callable[[PulsarError], None],
        permits: int,
    ) -> Reader:
        """Open a reader.

        Args:
            topic: as for `producer`; it must exist.
            start: a position, an end, or a publish time in milliseconds.
            inclusive: whether the entry at a start position is given too.
            compacted: give only the last of each key, where the topic is compacted.
            received: called with each entry, in order.
            lost: called once if the reader will never give an entry again.
            permits: how many entries may come, until `Reader.more`.

        Raises:
            PulsarError: refused, or not possible within `request_timeout_s`.
        """
        reader = Reader(self, topic, compacted, received, lost)
        await reader.open(start, inclusive=inclusive, permits=permits)
        self._open.add(reader)
        return reader

    async def close(self) -> None:
        """Close all producers, readers and connections."""
        await asyncio.gather(*(one.close() for one in self._open))
        tasks = list(self._connections.values())
        for task in tasks:
            task.cancel()
            with contextlib.suppress(PulsarError, asyncio.CancelledError):
                (await task).abort(PulsarUnavailableError("the client was closed"))

    def forget(self, one: Producer | Reader) -> None:
        """Let go of what was closed."""
        self._open.discard(one)

    async def broker_of(self, topic: str) -> Connection:
        """A connection to the broker that serves a topic.

        Raises:
            PulsarError: refused, or no broker answers in time.
        """
        return await self._connected(await self._look_up(topic))

    async def host_of(self, topic: str) -> str:
        """The machine of the broker that serves a topic, as brokers name it.

        Raises:
            PulsarError: refused, or no broker answers in time.
        """
        route = await self._look_up(topic)
        if route.proxy_to is not None:
            return ServiceUrl.parse(f"pulsar://{route.proxy_to}").addresses[0].host
        return route.address.host

    async def _look_up(self, topic: str) -> Route:
        """Ask one address after the other, first the one that answered last."""
        error: PulsarError | None = None
        for _ in self._service.addresses:
            asked = self._address
            try:
                self._refuse_foreign(asked)
                return await self._look_up_at(asked, topic)
            except PulsarUnavailableError as unavailable:
                error = unavailable
                self._tell(asked, error)
                # Whoever asked at the same time may have passed it over already.
                if self._address == asked:
                    self._address = next(self._next_address)
        assert error is not None
        raise error

    def _tell(self, asked: Address, error: PulsarError) -> None:
        if isinstance(error, ForeignPulsarError) and asked not in self._told:
            self._told.add(asked)
            _log.error(str(error))

    def _refuse_foreign(self, address: Address) -> None:
        if self._foreign.get(address, 0) > time.monotonic():
            raise ForeignPulsarError(f"{address} is of another Pulsar cluster")

    async def look_at(self, address: Address) -> None:
        """Return when an address of the service URL answers and is of the cluster.

        Raises:
            ForeignPulsarError: It is of another one.
            PulsarError: It refuses, or does not answer in time.
        """
        await self._connected(Route(address))

    async def _see_whose(self, address: Address, connection: Connection) -> None:
        """Return when a broker has shown that it is of the expected cluster.

        Raises:
            ForeignPulsarError: It is of another one; it is not asked for a while.
            PulsarError: It does not say.
        """
        expected = self.expected
        if expected is None:
            return
        answer = await connection.request(
            lambda number: GetSchema(number, expected.topic),
            SchemaAnswer,
            min(LOOK_UP_TIMEOUT_S, self.request_timeout_s),
        )
        if answer.error not in (None, NO_SCHEMA):
            raise server_error(answer.error or 0, answer.message)
        schema = None if answer.schema is None else answer.schema.data
        complaint = expected.complaint(str(address), schema)
        if complaint is not None:
            self._foreign[address] = time.monotonic() + FOREIGN_S
            raise ForeignPulsarError(complaint)

    async def _look_up_at(self, first: Address, topic: str) -> Route:
        connection = await self._connected(Route(first))
        authoritative = False
        for _ in range(REDIRECTS):
            asked = authoritative
            answer = await connection.request(
                lambda number, asked=asked: Lookup(  # type: ignore[misc]
                    topic, number, asked, self._listener_name
                ),
                LookupAnswer,
                min(LOOK_UP_TIMEOUT_S, self.request_timeout_s),
            )
            if answer.response == LookupType.CONNECT:
                return self._route(first, topic, answer)
            if answer.response != LookupType.REDIRECT:
                raise server_error(answer.error or 0, answer.message)
            connection = await self._connected(self._route(first, topic, answer))
            authoritative = answer.authoritative
        raise PulsarUnavailableError(f"{topic}: more than {REDIRECTS} redirects")

    def _route(self, asked: Address, topic: str, answer: LookupAnswer) -> Route:
        url = answer.broker_url_tls if self._tls else answer.broker_url
        if not url:
            kind = "pulsar+ssl" if self._tls else "pulsar"
            raise PulsarError(f"the broker of {topic} has no {kind} address")
        try:
            broker = ServiceUrl.parse(url).addresses[0]
        except ValueError as error:
            raise PulsarError(f"the broker of {topic} has a bad address") from error
        if answer.proxy_through_service_url and broker != asked:
            return Route(asked, f"{broker.host}:{broker.port}")
        return Route(broker)

    async def _connected(self, route: Route) -> Connection:
        task = self._connections.get(route)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._connect(route))
            self._connections[route] = task
        # Others wait for the same connection: who gives up does not end it.
        return await asyncio.shield(task)

    async def _connect(self, route: Route) -> Connection:
        def forget(_connection: Connection | None = None) -> None:
            if self._connections.get(route) is task:
                del self._connections[route]

        task = asyncio.current_task()
        host, port = route.address
        connection: Connection | None = None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(
                        self._authentication,
                        route.proxy_to,
                        self._keep_alive_s,
                        forget,
                    ),
                    host,
                    port,
                    ssl=self._tls() if self._tls is not None else None,
                )
            await connection.handshake(min(CONNECT_TIMEOUT_S, self.request_timeout_s))
            # Brokers that one of them names are of the same cluster.
            if route.proxy_to is None and route.address in self._service.addresses:
                await self._see_whose(route.address, connection)
        except OSError as error:  # as TimeoutError is
            forget()
            reason = explained(reason_of(error))
            raise PulsarUnavailableError(f"{host}:{port}: {reason}") from error
        except BaseException:
            forget()
            if connection is not None:
                connection.abort(PulsarUnavailableError("the handshake failed"))
            raise
        return connection
