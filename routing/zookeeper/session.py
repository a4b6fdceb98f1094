"""A session with ZooKeeper: requests from the event loop, and how long it is ours.

kazoo has threads of its own. They tell the loop what happened and touch nothing else,
and everything here runs on the loop's thread but where it says otherwise.

The servers give up a session when they have not heard of it for as long as it may be
silent. `held_until_s` is a time before which they cannot have done so.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from kazoo.client import TransactionRequest
from kazoo.exceptions import (
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    RequestTimeoutError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
    SystemZookeeperError,
    ThrottledOpError,
)
from kazoo.protocol.states import KazooState, KeeperState

from ropeway.routing.api import RouteStoreUnavailableError
from ropeway.routing.zookeeper.connection import drop, make_client

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kazoo.handlers.threading import AsyncResult
    from kazoo.protocol.states import ZnodeStat

    from ropeway.routing.zookeeper.zookeeper_config import (
        ZooKeeperConfig,
        ZooKeeperSettings,
    )

PROBES = 3
"""How often within the time that a session may be silent its servers are asked."""
CLOSE_S = 3.0
"""How long to wait for a server to say good-bye."""

_LOSSES = (
    ConnectionLoss,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    SystemZookeeperError,
    ThrottledOpError,
)


class LostError(Exception):
    """The connection was lost; what was asked for may have been done or not."""


class Session:
    """One session after the other, as each is lost.

    Answers come in the order of the requests, and who awaits one goes on in that order
    too: what is done with an answer before the next await is done in that order.
    """

    def __init__(
        self,
        place: ZooKeeperConfig,
        settings: ZooKeeperSettings,
        *,
        connected: Callable[[bool], None],
        disconnected: Callable[[bool], None],
    ) -> None:
        """Get ready; `open` connects.

        Args:
            place: The servers.
            settings: How they are reached.
            connected: Called with whether the session is another than before.
            disconnected: Called with whether the session is known to be over.
        """
        self._loop = asyncio.get_running_loop()
        self._place = place
        self._wait_s = settings.wait_s
        self._told_connected = connected
        self._told_disconnected = disconnected
        self._connected = asyncio.Event()
        self._closed = False
        self._asked: set[asyncio.Future[Any]] = set()
        self._prober: asyncio.Task[None] | None = None
        self.id = 0
        """The session's number at the servers."""
        self.timeout_s = settings.session_s
        """How long it may be silent, as the servers have it."""
        self.connections = 0
        """How many there have been."""
        self._reached_s = -math.inf
        self._held_until_s = -math.inf
        self._client = make_client(
            place, settings, partial(self._post, self._on_connected)
        )
        self._client.add_listener(self._listen)

    # Its life.

    async def open(self) -> None:
        """Connect.

        Raises:
            RouteStoreUnavailableError: No server answers.
        """
        self._client.start_async()
        self._prober = self._loop.create_task(self._probe())
        try:
            async with asyncio.timeout(self._wait_s):
                await self._connected.wait()
        except TimeoutError:
            await self.close()
            raise RouteStoreUnavailableError(
                f"no ZooKeeper server of {self._place.hosts} answered within "
                f"{self._wait_s:g} s"
            ) from None

    async def close(self) -> None:
        """End the session, so that what is ephemeral goes at once. Twice is fine."""
        if self._closed:
            return
        self._closed = True
        # Who waits for a connection is told that there will be none.
        self._connected.set()
        self._held_until_s = -math.inf
        if self._prober is not None:
            self._prober.cancel()
            await asyncio.gather(self._prober, return_exceptions=True)
        for future in self._asked:
            if not future.done():
                future.set_exception(LostError("the session was closed"))
        ended = asyncio.Event()

        def end() -> None:
            # It waits for threads that may wait for a server which says nothing.
            with suppress(KazooException, OSError):
                self._client.stop()
                self._client.close()
            self._post(ended.set)

        threading.Thread(
            target=end, name="end of ZooKeeper session", daemon=True
        ).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await ended.wait()

    @property
    def held_until_s(self) -> float:
        """Until when the session cannot be over, in seconds of `time.monotonic`."""
        return self._held_until_s

    @property
    def is_connected(self) -> bool:
        """Whether it is worth asking."""
        return self._connected.is_set() and not self._closed

    async def wait_connected(self) -> None:
        """Return when a request can be sent.

        Raises:
            RouteStoreUnavailableError: The session was closed.
        """
        await self._connected.wait()
        if self._closed:
            raise RouteStoreUnavailableError("the route store was closed")

    def _post(self, function: Callable[..., None], *arguments: object) -> None:
        """Have the loop call a function; from any thread."""
        # A loop that has ended needs to know nothing.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _listen(self, state: str) -> None:
        """Hear of the end of a connection, on kazoo's thread."""
        if state != KazooState.CONNECTED:
            over = state == KazooState.LOST
            self._post(self._on_disconnected, over)

    def _on_connected(self, session_id: int, sent_s: float, timeout_s: float) -> None:
        if self._closed:
            return
        self.connections += 1
        is_another = session_id != self.id
        self.id = session_id
        self.timeout_s = timeout_s
        # Whoever leads the servers was told of this session after `sent_s`.
        self._held_until_s = sent_s + timeout_s
        self._connected.set()
        self._told_connected(is_another)

    def _on_disconnected(self, over: bool) -> None:
        if self._closed:
            return
        self._connected.clear()
        if over:
            self._held_until_s = -math.inf
        self._told_disconnected(over)
        if self._client.client_state == KeeperState.CLOSED:
            # kazoo's thread came upon what it did not expect, and ended.
            threading.Thread(target=self._client.start_async, daemon=True).start()

    async def _probe(self) -> None:
        """Learn again and again that the servers know us.

        A server that follows answers pings by itself and tells the leader, who ends
        sessions, of them each half tick. So the request goes to the leader; and what
        counts is the one before the last: of that one the leader has heard.
        """
        while True:
            await asyncio.sleep(self.timeout_s / PROBES)
            with suppress(LostError, KazooException):
                sent_s = time.monotonic()
                session_id = self.id
                await self._answered()
                if self.is_connected and session_id == self.id:
                    self._held_until_s = max(
                        self._held_until_s, self._reached_s + self.timeout_s
                    )
                    self._reached_s = sent_s

    async def _answered(self) -> None:
        """Ask, and give the connection up where nobody answers."""
        try:
            async with asyncio.timeout(self.timeout_s):
                await self.sync("/")
        except TimeoutError:
            if self.is_connected:
                drop(self._client)

    # Requests. Each raises LostError, or kazoo's own error for what a server refuses.

    async def sync(self, path: str) -> None:
        """See what was changed by now, from the next request on."""
        await self._ask(self._client.sync_async, path)

    async def get(
        self, path: str, watch: Callable[..., None] | None = None
    ) -> tuple[bytes, ZnodeStat]:
        """What a node holds, and its versions."""
        answer: tuple[bytes, ZnodeStat] = await self._ask(
            self._client.get_async, path, watch
        )
        return answer

    async def exists(self, path: str, watch: Callable[..., None]) -> bool:
        """Whether a node is there; `watch` is called also when it is made."""
        stat: ZnodeStat | None = await self._ask(self._client.exists_async, path, watch)
        return stat is not None

    async def children(
        self, path: str, watch: Callable[..., None] | None = None
    ) -> list[str]:
        """The names of the nodes below a node."""
        answer: list[str] = await self._ask(
            self._client.get_children_async, path, watch
        )
        return answer

    async def create(self, path: str) -> None:
        """Make a node, and those above it that are missing; it may be there."""
        try:
            await self._ask(self._client.create_async, path)
        except NodeExistsError:
            pass
        except NoNodeError:
            await self.create(path.rpartition("/")[0])
            await self.create(path)

    def transaction(self) -> TransactionRequest:
        """Changes that are made all or none; `commit` makes them."""
        return TransactionRequest(self._client)

    async def commit(self, transaction: TransactionRequest) -> Sequence[Any]:
        """Make changes.

        Returns:
            What each led to.
        """
        results: Sequence[Any] = await self._ask(transaction.commit_async)
        for one in results:
            # kazoo hands out what went wrong like any result, a session's end, too.
            if isinstance(one, _LOSSES):
                raise LostError(type(one).__name__)
            if isinstance(one, Exception) and not isinstance(
                one, RolledBackError | RuntimeInconsistency
            ):
                raise one
        return results

    def watcher(self, call: Callable[[], None]) -> Callable[..., None]:
        """A function for `watch` that has the loop call `call`.

        The same one can be given again before it was called; it is called once then.
        """

        def watch(_event: object) -> None:
            self._post(call)

        return watch

    def _ask(
        self, request: Callable[..., AsyncResult], *arguments: object
    ) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        if self.is_connected:
            self._asked.add(future)
            request(*arguments).rawlink(partial(self._post, self._settle, future))
        else:
            future.set_exception(LostError("there is no connection"))
        return future

    def _settle(self, future: asyncio.Future[Any], result: AsyncResult) -> None:
        self._asked.discard(future)
        if future.done():
            # Nobody waits any more.
            return
        if isinstance(result.exception, _LOSSES):
            future.set_exception(LostError(type(result.exception).__name__))
        elif result.exception is not None:
            future.set_exception(result.exception)
        else:
            future.set_result(result.value)
