"""The route store of a single machine: one SQLite file, for one process or several."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog

from ropeway.common.system import boot_ns
from ropeway.common.tasks import Tasks
from ropeway.routing.api import Group, NameTakenError, Topic
from ropeway.routing.database import LOCKED_FOR_S, Database, Kind
from ropeway.routing.leases import Leases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from ropeway.routing.api import Broker

POLL_S = 0.1
"""How long another process' change goes unseen: waking an idle processor costs."""
TELL_AFTER_S = 1.0
"""Another process has the file for milliseconds; longer is worth a line."""

_log = structlog.get_logger()

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


def _boot_ms() -> int:
    return boot_ns() // 1_000_000


class EmbeddedRoutes:
    """A copy of the file in memory; each change is committed to the file first.

    A change is one small transaction, which a thread commits: others go on while the
    disk takes its time. One is made after the other, and each to its end, also where
    whoever asked for it waits no more.
    Where other processes share the file, `follow` keeps the copy fresh.
    """

    def __init__(
        self,
        path: Path,
        *,
        now_ms: Callable[[], int] = _boot_ms,
        locked_for_s: float = LOCKED_FOR_S,
    ) -> None:
        """Open or make the store.

        Args:
            path: The file.
            now_ms: Milliseconds since the machine was started.
            locked_for_s: How long a change waits for those of others.

        Raises:
            RouteError: The file is not a route store, or of a newer version.
        """
        self._watchers: list[Callable[[str], None]] = []
        self._setting_watchers: list[Callable[[str], None]] = []
        self._names_lost: list[Callable[[str], None]] = []
        self._topics: dict[str, Topic] = {}
        """Deleted ones are in `_deleted`, and no name in both."""
        self._deleted: dict[str, Topic] = {}
        self._groups: dict[str, Group] = {}
        self._settings: dict[tuple[str, str], str] = {}
        self._follower: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        """Held by who uses the file, which nobody else may do meanwhile."""
        self._under_way = Tasks()
        self._database = Database(path, locked_for_s)
        self._leases = Leases(self._database, now_ms)
        try:
            self._version = self._database.version()
            self._load_all()
        except (sqlite3.Error, msgspec.DecodeError) as error:
            self._database.close()
            raise self._database.unreadable(error) from error

    # Reading.

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Every topic by its name."""
        return self._topics

    @property
    def deleted(self) -> Mapping[str, Topic]:
        """What is kept of topics that were deleted, by name."""
        return self._deleted

    @property
    def groups(self) -> Mapping[str, Group]:
        """Every consumer group by its name."""
        return self._groups

    @property
    def settings(self) -> Mapping[tuple[str, str], str]:
        """Every setting by its namespace and key."""
        return self._settings

    @property
    def brokers(self) -> Mapping[str, tuple[Broker, ...]]:
        """Every broker that runs, by its name; each has one node here."""
        return self._leases.running()

    @property
    def held_until_s(self) -> float:
        """Nobody takes a broker's place: its data is on this machine."""
        return math.inf

    def watch_topics(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a topic's name after it was changed."""
        self._watchers.append(changed)

    def watch_settings(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a namespace after a setting of it was changed."""
        self._setting_watchers.append(changed)

    def watch_brokers(self, changed: Callable[[str], None]) -> None:
        """No broker has a node but the one that is its own."""

    # Changing.

    async def change_topic(
        self, name: str, change: Callable[[Topic | None], Topic | None]
    ) -> None:
        """Create, replace or delete a topic."""
        await self._change(
            *("topics", name, change),
            known=lambda: self._topics.get(name) or self._deleted.get(name),
            write=partial(self._database.put, "topics", name),
            keep=partial(self._set_topic, name),
            watchers=self._watchers,
        )

    async def change_group(
        self, name: str, change: Callable[[Group | None], Group | None]
    ) -> None:
        """Create, replace or delete a group."""
        await self._change(
            *("groups", name, change),
            known=lambda: self._groups.get(name),
            write=partial(self._database.put, "groups", name),
            keep=partial(_set, self._groups, name),
        )

    async def put_setting(self, namespace: str, key: str, value: str | None) -> None:
        """Set a setting, or remove it where the value is None."""
        await self.change_setting(namespace, key, lambda _: value)

    async def change_setting(
        self, namespace: str, key: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Set, replace or remove a setting."""
        await self._change(
            *("settings", namespace, change),
            known=lambda: self._settings.get((namespace, key)),
            write=partial(self._database.put_setting, namespace, key),
            keep=partial(_set, self._settings, (namespace, key)),
            watchers=self._setting_watchers,
        )

    async def _change(
        self,
        kind: Kind,
        name: str,
        change: Callable[[V | None], V | None],
        *,
        known: Callable[[], V | None],
        write: Callable[[V | None], None],
        keep: Callable[[V | None], None],
        watchers: Sequence[Callable[[str], None]] = (),
    ) -> None:
        async def make() -> None:
            async with self._changing:
                async with self._transaction():
                    old = known()
                    new = change(old)
                    if new == old:
                        return
                    write(new)
                    sequence = self._database.note(kind, name)
                self._sequence = sequence
                keep(new)
            for changed in watchers:
                changed(name)

        await self._to_its_end(make())

    def _set_topic(self, name: str, topic: Topic | None) -> None:
        is_deleted = topic is not None and topic.is_deleted
        _set(self._topics, name, None if is_deleted else topic)
        _set(self._deleted, name, topic if is_deleted else None)

    async def _to_its_end(self, change: Coroutine[Any, Any, R]) -> R:
        """Make a change: the copy has what the file has, whoever is cancelled."""
        return await asyncio.shield(self._under_way.start(change))

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        """What is done in it is done on all that others have done, and whole or not."""
        async with self._database.change():
            self._take_over()
            yield

    # Brokers.

    async def put_broker(self, broker: Broker) -> None:
        """Announce a broker of this process; to others, where there may be any.

        Raises:
            RouteError: Another process runs a broker of this name.
        """
        if self._follower is not None:
            held = first = await self._to_its_end(self._claim(broker))
            # Numbers of processes come again, after a restart of the machine above
            # all: only who renews its lease lives.
            while held is not None and held == first:
                await asyncio.sleep(POLL_S)
                held = await self._to_its_end(self._claim(broker))
            if held is not None:
                raise NameTakenError(
                    f"process {held[0]} runs a broker named {broker.name}; "
                    "each process that shares routes needs a name of its own"
                )
        self._leases.own(broker)

    async def _claim(self, broker: Broker) -> tuple[int, int] | None:
        async with self._changing, self._transaction():
            return self._leases.claim(broker)

    async def remove_broker(
        self,
        name: str,
        node: str,  # noqa: ARG002 - the only one
        incarnation: str | None = None,
    ) -> None:
        """Remove a node of a broker, this process or one that has ended."""
        was_own = self._leases.drop(name, incarnation)
        if was_own and self._follower is None:
            return
        await self._to_its_end(self._end_lease(name, incarnation))

    async def _end_lease(self, name: str, incarnation: str | None) -> None:
        async with self._changing, self._transaction():
            self._leases.end(name, incarnation)

    def watch_names(self, lost: Callable[[str], None]) -> None:
        """Call `lost` with why, when another process has a broker's name for good."""
        self._names_lost.append(lost)

    # Following other processes.

    async def catch_up(self) -> None:
        """Have in the copy all that was changed or begun when this was called."""
        if self._under_way:
            await asyncio.wait([*self._under_way])
        if self._follower is not None:
            # Whoever follows tells of a file that cannot be read.
            with suppress(sqlite3.Error, msgspec.DecodeError):
                async with self._changing:
                    self._take_over()

    async def refresh(self) -> None:
        """Have in the copy all that was changed; nobody else can be further."""
        await self.catch_up()

    async def find_topic(self, name: str) -> Topic | None:
        """A topic that may have been made a moment ago."""
        await self.catch_up()
        return self._topics.get(name)

    def follow(self) -> None:
        """Keep up with other processes from now on, and tell them of our brokers."""
        self._leases.load()
        self._follower = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        clock = asyncio.get_running_loop().time
        fresh_s = clock()
        told = False
        while True:
            await asyncio.sleep(POLL_S)
            try:
                async with self._changing:
                    self._take_over()
                    self._lose(self._leases.renew())
            except (sqlite3.Error, msgspec.DecodeError) as error:
                if not told and clock() - fresh_s > TELL_AFTER_S:
                    told = True
                    _log.warning("routes may be out of date", reason=str(error))
            except Exception:  # noqa: BLE001 - nobody would begin it again
                _log.exception("routes may be out of date")
            else:
                fresh_s = clock()
                if told:
                    told = False
                    _log.info("routes are up to date again")

    def _lose(self, lost: list[Broker]) -> None:
        for broker in lost:
            self._leases.drop(broker.name, None)
            self._leases.load()
            for told in self._names_lost:
                told(
                    f"another process runs a broker named {broker.name} since this one "
                    "stood still; each needs a name of its own"
                )

    def _take_over(self) -> None:
        """Bring the copy up to what other processes have committed."""
        version = self._database.version()
        if version == self._version:
            return
        changes = self._database.changes_since(self._sequence)
        if changes is None:
            self._load_again()
        else:
            for sequence, kind, name in changes:
                self._load(kind, name)
                self._sequence = sequence
        if self._follower is not None:
            self._leases.load()
        self._version = version

    def _load(self, kind: Kind, name: str) -> None:
        """Read what another process has changed."""
        if kind == "settings":
            self._load_settings()
            self._tell(self._setting_watchers, name)
            return
        if kind == "groups":
            _set(self._groups, name, self._database.get(kind, name, Group))
        else:
            self._set_topic(name, self._database.get(kind, name, Topic))
            self._tell(self._watchers, name)

    def _load_all(self) -> None:
        # What changes while this reads has a higher number and is read again.
        self._sequence = self._database.sequence()
        self._topics.clear()
        self._deleted.clear()
        for name, value in self._database.all("topics"):
            self._set_topic(name, msgspec.json.decode(value, type=Topic))
        self._groups.clear()
        for name, value in self._database.all("groups"):
            self._groups[name] = msgspec.json.decode(value, type=Group)
        self._load_settings()

    def _load_settings(self) -> None:
        self._settings.clear()
        self._settings.update(self._database.settings())

    def _load_again(self) -> None:
        topics, settings = self._topics | self._deleted, dict(self._settings)
        self._load_all()
        now = self._topics | self._deleted
        for name in topics.keys() | now.keys():
            if topics.get(name) != now.get(name):
                self._tell(self._watchers, name)
        for namespace in {
            one for (one, _), _ in settings.items() ^ self._settings.items()
        }:
            self._tell(self._setting_watchers, namespace)

    def _tell(self, watchers: list[Callable[[str], None]], name: str) -> None:
        """Tell of what others have changed."""
        for changed in watchers:
            try:
                changed(name)
            except Exception:  # noqa: BLE001 - the others must hear of it too
                _log.exception("a change could not be followed", name=name)

    async def close(self) -> None:
        """Close the file."""
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._database.close()


def _set(mapping: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value
