"""The nodes of brokers: ours announced, again in each new session; all of them watched.

A node is announced by an ephemeral node of ZooKeeper, which goes with the session that
made it. Its number says in which order the nodes of a broker take over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog
from kazoo.exceptions import NoNodeError

from routing.zookeeper import codec
from routing.zookeeper.codec import Announcement, DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from routing.api import Broker
    from routing.zookeeper.layout import Layout
    from routing.zookeeper.session import Session

_log = structlog.get_logger()


class _Folder:
    """Where the nodes of one broker are."""

    def __init__(self, node: str, path: str, watch: Callable[..., None]) -> None:
        self.broker = codec.name_of(node)
        self.node = node
        self.path = path
        self.watch = watch
        self.known: dict[Announcement, Broker | None] = {}
        """None for an announcement that is damaged."""
        self.reading = asyncio.Lock()
        """An older answer must not come after a newer one."""


class Brokers:
    """Who serves which broker, in which order.

    Whatever asks the servers raises LostError where the connection is lost, and kazoo's
    own error where they refuse.
    """

    def __init__(
        self, session: Session, layout: Layout, wake: Callable[[], None]
    ) -> None:
        """Get ready; `start_session` reads.

        Args:
            session: The connection.
            layout: Where everything is.
            wake: Called when something was changed, for it to call `refresh`.
        """
        self.running: dict[str, tuple[Broker, ...]] = {}
        self.watchers: list[Callable[[str], None]] = []
        self.is_announced = False
        """Whether this session has announced what this process is."""
        self._session = session
        self._layout = layout
        self._wake = wake
        self._own: dict[tuple[str, str], Broker] = {}
        self._folders_changed = False
        self._watch_folders = session.watcher(self._on_folders)
        self._folders: dict[str, _Folder] = {}
        self._changed: set[_Folder] = set()

    # Our own.

    async def start_session(self) -> None:
        """Announce what this process is, in the order it was announced in; read all."""
        for broker in list(self._own.values()):
            await self._announce(broker)
        self.is_announced = True
        await self.read_all()

    def end_session(self) -> None:
        """Know that all that was announced is gone."""
        self.is_announced = False
        for name, node in self._own:
            left = (one for one in self.running.get(name, ()) if one.node != node)
            self._show(name, tuple(left))

    async def put(self, broker: Broker) -> None:
        """Announce a node, in place of what it announced before."""
        await self._announce(broker)
        self._own[broker.name, broker.node] = broker
        await self._read(self._folder(codec.node_name(broker.name)))

    async def remove(self, name: str, node: str) -> None:
        """Remove a node of a broker."""
        self._own.pop((name, node), None)
        while paths := await self._announced(name, node):
            transaction = self._session.transaction()
            for path in paths:
                transaction.delete(path)
            try:
                await self._session.commit(transaction)
            except NoNodeError:
                continue
            break
        await self._read(self._folder(codec.node_name(name)))

    async def _announce(self, broker: Broker) -> None:
        folder = self._layout.broker(codec.node_name(broker.name))
        prefix = f"{folder}/{codec.node_name(broker.node)},"
        while True:
            transaction = self._session.transaction()
            for path in await self._announced(broker.name, broker.node):
                transaction.delete(path)
            transaction.create(
                prefix, codec.dump(broker), ephemeral=True, sequence=True
            )
            try:
                await self._session.commit(transaction)
            except NoNodeError:
                # There is no folder yet, or what is to be replaced has just gone.
                await self._session.create(folder)
            else:
                return

    async def _announced(self, name: str, node: str) -> list[str]:
        """The paths of what a node has announced."""
        folder = self._layout.broker(codec.node_name(name))
        await self._session.sync(folder)
        try:
            names = await self._session.children(folder)
        except NoNodeError:
            return []
        return [
            f"{folder}/{one}"
            for one in names
            if (found := codec.parse_announcement(one)) and found.node == node
        ]

    # All.

    async def refresh(self) -> None:
        """Read what has changed since the last time."""
        if self._folders_changed:
            await self._read_folders()
        changed, self._changed = self._changed, set()
        try:
            await asyncio.gather(*map(self._read, changed))
        except BaseException:
            self._changed |= changed
            raise

    async def read_all(self) -> None:
        """Read everything: on a new connection nothing is watched any more."""
        self._changed.update(self._folders.values())
        self._folders_changed = True
        await self.refresh()

    async def _read_folders(self) -> None:
        nodes = await self._session.children(self._layout.brokers, self._watch_folders)
        self._folders_changed = False
        for node in nodes:
            if node not in self._folders and codec.is_name(node):
                self._changed.add(self._folder(node))

    def _folder(self, node: str) -> _Folder:
        folder = self._folders.get(node)
        if folder is None:
            watch = self._session.watcher(lambda: self._on_nodes(node))
            folder = _Folder(node, self._layout.broker(node), watch)
            self._folders[node] = folder
        return folder

    async def _read(self, folder: _Folder) -> None:
        """Bring the nodes of one broker up to what the store has."""
        async with folder.reading:
            try:
                names = await self._session.children(folder.path, folder.watch)
            except NoNodeError:
                # It is made with the first node, and is new then.
                self._folders.pop(folder.node, None)
                names = []
            found = sorted(filter(None, map(codec.parse_announcement, names)))
            self._miss_own(folder, found)
            for gone in folder.known.keys() - set(found):
                del folder.known[gone]
            for one in found:
                if one not in folder.known:
                    folder.known[one] = await self._get(f"{folder.path}/{one.path}")
            nodes = (folder.known[one] for one in found)
            self._show(folder.broker, tuple(filter(None, nodes)))

    async def _get(self, path: str) -> Broker | None:
        try:
            data, _ = await self._session.get(path)
            return codec.load_broker(data)
        except NoNodeError:
            # It has gone since, and the watch says so.
            return None
        except DamagedError as error:
            _log.error("a damaged broker is left out", path=path, reason=str(error))
            return None

    def _miss_own(self, folder: _Folder, found: Iterable[Announcement]) -> None:
        """Notice who was removed by others, as one that has ended or was replaced."""
        nodes = {one.node for one in found}
        for name, node in list(self._own):
            if self.is_announced and name == folder.broker and node not in nodes:
                _log.warning("others removed this node", broker=name, node=node)
                del self._own[name, node]

    def _show(self, name: str, nodes: tuple[Broker, ...]) -> None:
        if nodes == self.running.get(name, ()):
            return
        if nodes:
            self.running[name] = nodes
        else:
            del self.running[name]
        for changed in self.watchers:
            try:
                changed(name)
            except Exception as error:  # noqa: BLE001 - the others must hear of it too
                _log.error(
                    "a broker could not be followed", broker=name, exc_info=error
                )

    def _on_folders(self) -> None:
        self._folders_changed = True
        self._wake()

    def _on_nodes(self, node: str) -> None:
        self._changed.add(self._folder(node))
        self._wake()
