"""What every producer and consumer stands on: connections, routes, heartbeats."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ropeway.client.connections import Connections
from ropeway.client.errors import ClientClosedError, RemotingError
from ropeway.client.ids import client_id, new_instance
from ropeway.client.routes import Routes
from ropeway.client.tasks import OwnedTasks, wait_for
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.callbacks import GetConsumerRunningInfo
from ropeway.gateway.wire.commands.clients import HeartBeat, UnregisterClient
from ropeway.gateway.wire.header import from_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.client.config import ClientConfig

_log = logging.getLogger(__name__)


class Instance:
    """One client as brokers know it: it has one id and one producer or consumer.

    Args:
        name_server: `host:port`, several joined by semicolons.
        config: Times and limits.
        instance: The part of the client id behind the address; a new one by default.
        connections: What carries the requests; connections of its own by default.
    """

    def __init__(
        self,
        name_server: str,
        config: ClientConfig,
        instance: str | None = None,
        connections: Connections | None = None,
    ) -> None:
        self.client_id = client_id(instance or new_instance())
        self.config = config
        self.tasks = OwnedTasks()
        self.connections = connections or Connections(config, self._opened)
        self._beat = asyncio.Event()
        self.routes = Routes(name_server, self.connections, self._beat.set)
        self.describe: Callable[[], bodies.HeartbeatData] | None = None
        """Says what heartbeats carry; None sends none."""
        self._is_running = False

    def start(self) -> None:
        """Start refreshing routes and sending heartbeats.

        Raises:
            ClientClosedError: It was started before.
        """
        if self._is_running:
            raise ClientClosedError("a client starts once")
        self._is_running = True
        self.tasks.spawn(self._refresh_routes(), "routes")
        if self.describe is not None:
            self.tasks.spawn(self._send_heartbeats(), "heartbeats")

    def ensure_started(self) -> None:
        """Refuse work on a client that does not run.

        Raises:
            ClientClosedError: It was not started, or is closed.
        """
        if not self._is_running:
            raise ClientClosedError("the client is not started, or closed")

    def on_running_info(self, answer: Callable[[bool], bytes]) -> None:
        """Answer a broker that asks how a consumer does; True asks for its stacks."""
        self.connections.handlers[RequestCode.GET_CONSUMER_RUNNING_INFO] = (
            lambda fields, _body: answer(
                from_fields(GetConsumerRunningInfo, fields).jstack_enable
            )
        )

    def on_consumers_changed(self, callback: Callable[[], None]) -> None:
        """Call back when a broker says that a group's consumers have changed."""
        code = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        self.connections.handlers[code] = lambda _fields, _body: callback()

    def _opened(self, address: str) -> None:
        # A broker that was restarted has forgotten us until the next heartbeat.
        if address in self.routes.addresses(masters_only=False):
            self._beat.set()

    async def _refresh_routes(self) -> None:
        while True:
            await asyncio.sleep(self.config.route_interval_s)
            await self.routes.refresh()

    async def _send_heartbeats(self) -> None:
        while True:
            await wait_for(self._beat, self.config.heartbeat_interval_s)
            self._beat.clear()
            await self.heartbeat()

    async def heartbeat(self) -> None:
        """Tell all brokers of all known routes what this client is; failures wait."""
        if self.describe is None:
            return
        data = self.describe()
        body = bodies.encode(data)
        masters_only = not data.consumer_data_set
        await asyncio.gather(
            *(
                self._heartbeat_one(address, body)
                for address in self.routes.addresses(masters_only=masters_only)
            )
        )

    async def _heartbeat_one(self, address: str, body: bytes) -> None:
        try:
            await self.connections.request(address, HeartBeat(), body)
        except RemotingError as error:
            _log.warning("heartbeat failed address=%s error=%s", address, error)

    async def _unregister(self) -> None:
        assert self.describe is not None
        data = self.describe()
        producers = [entry.group_name for entry in data.producer_data_set or ()]
        consumers = [entry.group_name for entry in data.consumer_data_set or ()]
        header = UnregisterClient(
            client_id=self.client_id,
            producer_group=producers[0] if producers else None,
            consumer_group=consumers[0] if consumers else None,
        )
        addresses = self.routes.addresses(masters_only=not consumers)
        results = await asyncio.gather(
            *(self.connections.request(address, header) for address in addresses),
            return_exceptions=True,
        )
        for error in results:
            if isinstance(error, BaseException):
                _log.info("unregister failed error=%s", error)

    async def close(self) -> None:
        """Say farewell to the brokers and close everything; within the time-out."""
        if not self._is_running:
            return
        self._is_running = False
        await self.tasks.close()
        try:
            if self.describe is not None:
                async with asyncio.timeout(self.config.close_timeout_s):
                    await self._unregister()
        except TimeoutError:
            _log.warning(
                "brokers took too long to unregister client=%s", self.client_id
            )
        finally:
            await self.connections.close()
