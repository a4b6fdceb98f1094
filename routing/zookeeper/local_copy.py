"""The copy in memory of topics, groups and settings, and how it follows the store.

Invariants:
- What the copy has of a node is what the node held at one time, and that time only
  moves on: an answer goes into the copy before the next await, and answers come in the
  order of the requests.
- The copy has all changes up to the one numbered `sequence`.
- `deletions` was read before any node that the copy has. So as long as it is the same
  in the store, no node that the copy has was deleted and made again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import structlog
from kazoo.exceptions import NoNodeError

from ropeway.routing.api import Group, RouteError, Topic
from ropeway.routing.zookeeper import codec
from ropeway.routing.zookeeper.codec import KINDS, DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.routing.zookeeper.codec import Kind, Value
    from ropeway.routing.zookeeper.layout import Layout
    from ropeway.routing.zookeeper.session import Session

IN_FLIGHT = 1000
"""Requests on their way while everything is read."""

_log = structlog.get_logger()


class Held(NamedTuple):
    """What a node holds, and its version."""

    value: Value
    version: int


class RouteCopy:
    """Every topic, group and setting, as the store had them a moment ago."""

    def __init__(
        self, session: Session, layout: Layout, wake: Callable[[], None]
    ) -> None:
        """Get ready; `refresh` reads.

        Args:
            session: The connection.
            layout: Where everything is.
            wake: Called when something was changed, for it to call `refresh`.
        """
        self.topics: dict[str, Topic] = {}
        self.deleted: dict[str, Topic] = {}
        """What is kept of topics that were deleted; no name is in both."""
        self.groups: dict[str, Group] = {}
        self.settings: dict[tuple[str, str], str] = {}
        self.watchers: list[Callable[[str], None]] = []
        self.setting_watchers: list[Callable[[str], None]] = []
        self.sequence = -1
        self.deletions = -1
        self.listed_from = 0
        """The number of the first change that the list had at the last refresh."""
        self._session = session
        self._layout = layout
        self._wake = session.watcher(wake)
        self._held: dict[tuple[Kind, str], Held] = {}
        self._damaged: dict[tuple[Kind, str], str] = {}
        self._listed: list[str] = []
        self._is_whole = False
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    # One node.

    def find(self, kind: Kind, node: str) -> Held | None:
        """What the copy has of a node.

        Raises:
            RouteError: The node is damaged.
        """
        if reason := self._damaged.get((kind, node)):
            raise RouteError(f"{self._path(kind, node)} is damaged: {reason}")
        return self._held.get((kind, node))

    async def read(self, kind: Kind, node: str) -> None:
        """Bring one node in the copy up to what the store has.

        Raises:
            LostError: The connection was lost.
        """
        try:
            data, stat = await self._session.get(self._layout.node(kind, node))
        except NoNodeError:
            self.put(kind, node, None)
            return
        try:
            value = codec.load(kind, node, data)
        except DamagedError as error:
            self._leave_out(kind, node, str(error))
        else:
            self.put(kind, node, Held(value, stat.version))

    def put(self, kind: Kind, node: str, held: Held | None) -> None:
        """Have something else of a node, and tell who watches its kind."""
        self._damaged.pop((kind, node), None)
        old = self._held.pop((kind, node), None)
        if held is not None:
            self._held[kind, node] = held
        if old and held and old.value == held.value:
            return
        if held is not None:
            self._show(node, held.value)
        elif old is not None:
            self._hide(kind, node)
        else:
            return
        if kind == "topics":
            self._tell(self.watchers, codec.name_of(node))
        elif kind == "settings":
            self._tell(self.setting_watchers, codec.setting_of(node)[0])

    def _show(self, node: str, value: Value) -> None:
        if isinstance(value, Topic):
            self._hide_topic(value.name)
            (self.deleted if value.is_deleted else self.topics)[value.name] = value
        elif isinstance(value, Group):
            self.groups[value.name] = value
        else:
            self.settings[codec.setting_of(node)] = value

    def _hide(self, kind: Kind, node: str) -> None:
        if kind == "topics":
            self._hide_topic(codec.name_of(node))
        elif kind == "groups":
            del self.groups[codec.name_of(node)]
        else:
            del self.settings[codec.setting_of(node)]

    def _hide_topic(self, name: str) -> None:
        self.topics.pop(name, None)
        self.deleted.pop(name, None)

    def _leave_out(self, kind: Kind, node: str, reason: str) -> None:
        if self._damaged.get((kind, node)) != reason:
            _log.error(
                "a damaged route is left out",
                path=self._layout.node(kind, node),
                reason=reason,
            )
        self.put(kind, node, None)
        self._damaged[kind, node] = reason

    def _tell(self, watchers: list[Callable[[str], None]], name: str) -> None:
        for changed in watchers:
            try:
                changed(name)
            except Exception as error:  # noqa: BLE001 - the others must hear of it too
                _log.error("a change could not be followed", name=name, exc_info=error)

    def _path(self, kind: Kind, node: str) -> str:
        return f"{self._layout.node(kind, node)} in ZooKeeper"

    # All nodes.

    async def refresh(self) -> None:
        """Have in the copy all that was changed anywhere before this was called.

        Callers at the same time share one refresh, which begins after they called.

        Raises:
            LostError: The connection was lost.
            KazooException: The servers refuse to tell.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._refresh_after(self._running))
            # Everybody who waited may have given up.
            self._next.add_done_callback(
                lambda done: done.cancelled() or done.exception()
            )
        await asyncio.shield(self._next)

    async def _refresh_after(self, running: asyncio.Task[None] | None) -> None:
        if running is not None:
            await asyncio.wait([running])
        self._running, self._next = self._next, None
        await self._refresh()

    async def _refresh(self) -> None:
        session, layout = self._session, self._layout
        _, (_, deletions), names = await asyncio.gather(
            session.sync(layout.root),
            session.get(layout.deletions),
            session.children(layout.changes, self._wake),
        )
        listed = sorted(
            (number, name) for name in names if (number := codec.number_of(name)) >= 0
        )
        newest = listed[-1][0] if listed else -1
        listed_from = listed[0][0] if listed else 0
        # Of a store that was put back from a backup, nothing is known.
        if self._is_whole and listed_from - 1 <= self.sequence <= newest:
            new = (name for number, name in listed if number > self.sequence)
            changed = {codec.parse_change(name) for name in new} - {None}
            await asyncio.gather(*(self.read(*one) for one in changed if one))
        else:
            await self._read_all()
        self._is_whole = True
        self.sequence = newest
        self.deletions = deletions.version
        self.listed_from = listed_from
        self._listed = names

    def lists(self, change_id: str) -> bool:
        """Whether the list of changes had a change at the last refresh."""
        part = f",{change_id},"
        return any(part in name for name in self._listed)

    async def _read_all(self) -> None:
        for kind in KINDS:
            nodes = await self._session.children(self._layout.folder(kind))
            known = {node for one, node in (*self._held, *self._damaged) if one == kind}
            for gone in known.difference(nodes):
                self.put(kind, gone, None)
            for start in range(0, len(nodes), IN_FLIGHT):
                some = nodes[start : start + IN_FLIGHT]
                await asyncio.gather(*(self.read(kind, node) for node in some))
