"""The route store on ZooKeeper: reads from a copy, changes in transactions."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import structlog
from kazoo.exceptions import KazooException

from ropeway.common.reasons import reason_of
from ropeway.routing.api import Group, RouteError, RouteStoreUnavailableError, Topic
from ropeway.routing.zookeeper import codec
from ropeway.routing.zookeeper.brokers import Brokers
from ropeway.routing.zookeeper.changes import Changes
from ropeway.routing.zookeeper.layout import Layout, prepare, refusal
from ropeway.routing.zookeeper.local_copy import RouteCopy
from ropeway.routing.zookeeper.node_names import Names
from ropeway.routing.zookeeper.session import LostError, Session
from ropeway.routing.zookeeper.zookeeper_config import ZooKeeperSettings, parse_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from ropeway.routing.api import Broker
    from ropeway.routing.zookeeper.zookeeper_config import ZooKeeperConfig

FIND_S = 1.0
"""Who asks for a topic that nobody knows waits no longer than this."""
TELL_AFTER_S = 1.0
"""Another server is found within this, mostly; longer is worth a line."""
RETRY_S = 1.0

_log = structlog.get_logger()


async def open_routes(
    url: str, settings: ZooKeeperSettings | None = None, *, make: bool = True
) -> ZooKeeperRoutes:
    """Open the route store of a URL.

    Args:
        url: zookeeper://host:port,host:port/path.
        settings: How it is reached.
        make: Make one, where there is nothing.

    Raises:
        NoRoutesError: There is nothing, and none is to be made.
        RouteStoreUnavailableError: No server answers.
        RouteError: The URL names no place; or something else is there, or a newer
            version.
    """
    routes = ZooKeeperRoutes(parse_url(url), settings or ZooKeeperSettings())
    return await routes.open(make=make)


class ZooKeeperRoutes:
    """A copy of the store in memory, and one session with ZooKeeper.

    One task follows: it is woken by what happens and reads what has changed.
    """

    def __init__(self, place: ZooKeeperConfig, settings: ZooKeeperSettings) -> None:
        self._place = place
        self._wait_s = settings.wait_s
        self._session = Session(
            place,
            settings,
            connected=self._on_connected,
            disconnected=self._on_disconnected,
        )
        self._layout = Layout(place.root)
        self._awake = asyncio.Event()
        self._copy = RouteCopy(self._session, self._layout, self._awake.set)
        self._brokers = Brokers(self._session, self._layout, self._awake.set)
        self._names = Names(self._session, self._brokers, self._put_broker)
        self._changes = Changes(self._session, self._layout, self._copy)
        self._finding: dict[str, asyncio.Task[None]] = {}
        self._is_new_session = True
        self._is_new_connection = True
        self._follower: asyncio.Task[None] | None = None
        self._telling: asyncio.TimerHandle | None = None
        self._told = False

    async def open(self, *, make: bool = True) -> Self:
        """Connect, and read everything; see `open_routes`.

        Raises:
            NoRoutesError: There is nothing, and none is to be made.
            RouteStoreUnavailableError: No server answers.
            RouteError: Something else is there, or a newer version.
        """
        await self._session.open()
        try:
            async with self._bounded("it cannot be opened"):
                await self._patiently(
                    lambda: prepare(self._session, self._layout, make=make)
                )
            await self._read_all()
        except BaseException:
            await self._session.close()
            raise
        self._follower = asyncio.get_running_loop().create_task(self._follow())
        return self

    async def _read_all(self) -> None:
        """Read for as long as it takes, but not while no server answers."""
        reading = asyncio.create_task(self._patiently(self._follow_once))
        try:
            while not (await asyncio.wait([reading], timeout=self._wait_s))[0]:
                if not self._session.is_connected:
                    raise self._unavailable("it cannot be read")
            await reading
        finally:
            reading.cancel()

    # Reading.

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Every topic by its name."""
        return self._copy.topics

    @property
    def deleted(self) -> Mapping[str, Topic]:
        """What is kept of topics that were deleted, by name."""
        return self._copy.deleted

    @property
    def groups(self) -> Mapping[str, Group]:
        """Every consumer group by its name."""
        return self._copy.groups

    @property
    def settings(self) -> Mapping[tuple[str, str], str]:
        """Every setting by its namespace and key."""
        return self._copy.settings

    @property
    def brokers(self) -> Mapping[str, tuple[Broker, ...]]:
        """The nodes of every broker that runs, the master first."""
        return self._brokers.running

    @property
    def held_until_s(self) -> float:
        """Until when nobody can have taken the place of this process' brokers."""
        if not self._brokers.is_announced:
            return -math.inf
        return self._session.held_until_s

    def watch_topics(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a topic's name after it was changed."""
        self._copy.watchers.append(changed)

    def watch_settings(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a namespace after a setting of it was changed."""
        self._copy.setting_watchers.append(changed)

    def watch_brokers(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a broker's name after its nodes changed."""
        self._brokers.watchers.append(changed)

    async def catch_up(self) -> None:
        """Nothing: all that others change comes from other machines, in a moment."""

    async def refresh(self) -> None:
        """Have in the copy all that was changed anywhere before this was called."""
        async with self._bounded("it cannot be read"):
            await self._patiently(self._copy.refresh)

    async def find_topic(self, name: str) -> Topic | None:
        """A topic that may have been made a moment ago, wherever."""
        if name not in self._copy.topics and self._session.is_connected:
            task = self._finding.get(name)
            if task is None:
                task = asyncio.get_running_loop().create_task(self._find(name))
                self._finding[name] = task
                task.add_done_callback(lambda _: self._finding.pop(name))
            await asyncio.wait([task], timeout=FIND_S)
        return self._copy.topics.get(name)

    async def _find(self, name: str) -> None:
        try:
            async with asyncio.timeout(FIND_S):
                await self._session.sync(self._layout.root)
                await self._copy.read("topics", codec.node_name(name))
        except (TimeoutError, LostError, KazooException) as error:
            _log.info(
                "a topic could not be looked up", topic=name, reason=reason_of(error)
            )

    # Changing.

    async def change_topic(
        self, name: str, change: Callable[[Topic | None], Topic | None]
    ) -> None:
        """Create, replace or delete a topic."""
        async with self._bounded(f"topic {name} cannot be changed"):
            await self._changes.change("topics", codec.node_name(name), change, Topic)

    async def change_group(
        self, name: str, change: Callable[[Group | None], Group | None]
    ) -> None:
        """Create, replace or delete a group."""
        async with self._bounded(f"group {name} cannot be changed"):
            await self._changes.change("groups", codec.node_name(name), change, Group)

    async def put_setting(self, namespace: str, key: str, value: str | None) -> None:
        """Set a setting, or remove it where the value is None."""
        await self.change_setting(namespace, key, lambda _: value)

    async def change_setting(
        self, namespace: str, key: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Set, replace or remove a setting."""
        node = codec.node_name(namespace, key)
        async with self._bounded(f"setting {namespace} {key} cannot be changed"):
            await self._changes.change("settings", node, change, str)

    async def put_broker(self, broker: Broker) -> None:
        """Announce this process as a node of a broker, once no other has its name."""
        await self._names.announce(broker)

    async def _put_broker(self, broker: Broker) -> Broker | None:
        rival = None

        async def put() -> None:
            nonlocal rival
            rival = await self._brokers.put(broker)

        async with self._bounded(f"broker {broker.name} cannot be announced"):
            await self._patiently(put)
        return rival

    def watch_names(self, lost: Callable[[str], None]) -> None:
        """Call `lost` with why, when another process has a node's name for good."""
        self._names.watchers.append(lost)

    async def remove_broker(
        self, name: str, node: str, incarnation: str | None = None
    ) -> None:
        """Remove a node of a broker, this process or one that has ended."""
        if self._brokers.owns(name, node, incarnation):
            await self._names.stop(name, node)
        async with self._bounded(f"node {node} of {name} cannot be removed"):
            await self._patiently(lambda: self._brokers.remove(name, node, incarnation))

    @asynccontextmanager
    async def _bounded(self, trouble: str) -> AsyncIterator[None]:
        """Give up when the servers were away for too long."""
        bound = asyncio.timeout(self._wait_s)
        try:
            async with bound:
                yield
        except TimeoutError:
            if not bound.expired():
                raise
            raise self._unavailable(trouble) from None

    def _unavailable(self, trouble: str) -> RouteStoreUnavailableError:
        return RouteStoreUnavailableError(
            f"{trouble}: no ZooKeeper server of {self._place.hosts} answered "
            f"within {self._wait_s:g} s"
        )

    async def _patiently(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take a step that may be taken again, until it was taken."""
        while True:
            await self._session.wait_connected()
            try:
                await step()
            except LostError:
                continue
            except KazooException as error:
                raise RouteError(
                    f"ZooKeeper refuses {self._place.root}: {refusal(error)}"
                ) from error
            return

    # Following.

    def _on_connected(self, is_another: bool) -> None:
        if is_another:
            self._is_new_session = True
            self._brokers.end_session()
        self._is_new_connection = True
        self._awake.set()

    def _on_disconnected(self, is_over: bool) -> None:
        if is_over:
            self._brokers.end_session()
        if self._telling is None:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(
                TELL_AFTER_S, self._tell, "no server answers"
            )

    async def _follow(self) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            await self._session.wait_connected()
            try:
                await self._follow_once()
            except LostError:
                self._awake.set()
            except KazooException as error:
                self._tell(refusal(error))
                self._awake.set()
                await asyncio.sleep(RETRY_S)
            except Exception:  # noqa: BLE001 - nobody would begin it again
                _log.exception("routes may be out of date")
                self._awake.set()
                await asyncio.sleep(RETRY_S)
            else:
                self._is_fresh()

    async def _follow_once(self) -> None:
        """Read what has changed; in a new session, announce our brokers first."""
        is_new_session, self._is_new_session = self._is_new_session, False
        is_new_connection, self._is_new_connection = self._is_new_connection, False
        try:
            if is_new_session:
                await self._brokers.start_session()
            elif is_new_connection:
                await self._brokers.read_all()
            else:
                await self._brokers.refresh()
        except BaseException:
            self._is_new_session |= is_new_session
            self._is_new_connection |= is_new_connection
            raise
        await self._copy.refresh()

    def _tell(self, reason: str) -> None:
        if not self._told:
            self._told = True
            _log.warning("routes may be out of date", reason=reason)

    def _is_fresh(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        if self._told:
            self._told = False
            _log.info("routes are up to date again")

    async def close(self) -> None:
        """End the session: our brokers are gone at once. Twice is fine."""
        if self._telling is not None:
            self._telling.cancel()
        tasks = [
            *self._finding.values(),
            *self._names.returning.values(),
            *filter(None, [self._follower]),
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()
