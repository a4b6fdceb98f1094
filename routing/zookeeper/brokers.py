"""The nodes of brokers: ours announced, again in each new session; all of them watched.

A node is announced by an ephemeral node of ZooKeeper, which goes with the session that
made it. Its number says in which order the nodes of a broker take over. Of processes
that have one name, the one with the lowest number is the rightful one.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import structlog
from kazoo.exceptions import NoNodeError

from ropeway.routing.zookeeper import codec
from ropeway.routing.zookeeper.codec import Announcement, DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from ropeway.routing.api import Broker
    from ropeway.routing.zookeeper.layout import Layout
    from ropeway.routing.zookeeper.session import Session

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
        self,
        session: Session,
        layout: Layout,
        wake: Callable[[], None],
    ) -> None:
        """Get ready; `start_session` reads.

        Args:
            session: The connection.
            layout: Where everything is.
            wake: Called when something was changed, for it to call `refresh`.
        """
        self.running: dict[str, tuple[Broker, ...]] = {}
        self.watchers: list[Callable[[str], None]] = []
        self._session = session
        self._layout = layout
        self._wake = wake
        self.missed: Callable[[Broker], None] = _nobody
        """Called with a node of this process that is announced no more."""
        self._own: dict[tuple[str, str], Broker] = {}
        self._places: dict[tuple[str, str], int] = {}
        """The numbers of those of our own that this session has announced."""
        self._folders_changed = False
        self._watch_folders = session.watcher(self._on_folders)
        self._folders: dict[str, _Folder] = {}
        self._changed: set[_Folder] = set()

    # Our own.

    @property
    def is_announced(self) -> bool:
        """Whether all that this process is stands in the store, as far as is known."""
        return self._places.keys() == self._own.keys()

    def misses(self, broker: Broker) -> bool:
        """Whether a node of this process is to be announced, and is not."""
        key = broker.name, broker.node
        return key in self._own and key not in self._places

    def owns(self, name: str, node: str, incarnation: str | None) -> bool:
        """Whether this process is a node, and of an incarnation, or None: whichever."""
        own = self._own.get((name, node))
        return own is not None and incarnation in (None, own.incarnation)

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """An event that each change of any broker's nodes sets."""
        changed = asyncio.Event()

        def told(_: str) -> None:
            changed.set()

        self.watchers.append(told)
        try:
            yield changed
        finally:
            self.watchers.remove(told)

    async def start_session(self) -> None:
        """Read everything, and have announced again what this process is."""
        await self.read_all()
        for own in list(self._own.values()):
            if self.misses(own):
                self.missed(own)

    def end_session(self) -> None:
        """Know that all that was announced is gone."""
        self._places.clear()
        for own in self._own.values():
            nodes = self.running.get(own.name, ())
            self._show(own.name, tuple(one for one in nodes if not one.is_process(own)))

    async def put(self, broker: Broker) -> Broker | None:
        """Announce a node, in place of what the same process announced before.

        Returns:
            Nothing; or another process that has its name, and then it is not announced.
        """
        node = codec.node_name(broker.name)
        # What is replaced is not missed.
        self._places.pop((broker.name, broker.node), None)
        number = None
        while number is None:
            ours, rival = await self._of_one_name(broker)
            if rival is not None:
                await self._read(self._folder(node))
                return rival
            number = await self._replace(broker, ours)
        # Another may have come at the same moment.
        ours, rival = await self._of_one_name(broker)
        if rival is not None:
            await self._delete(ours)
        await self._read(self._folder(node), None if rival else (broker, number))
        return rival

    async def _replace(self, broker: Broker, ours: Sequence[str]) -> int | None:
        """Announce, once; the number, or None where that is to be begun again."""
        folder = self._layout.broker(codec.node_name(broker.name))
        transaction = self._session.transaction()
        for path in ours:
            transaction.delete(path)
        prefix = f"{folder}/{codec.node_name(broker.node)},"
        transaction.create(prefix, codec.dump(broker), ephemeral=True, sequence=True)
        try:
            *_, path = await self._session.commit(transaction)
        except NoNodeError:
            # There is no folder yet, or what is to be replaced has just gone.
            await self._session.create(folder)
            return None
        return codec.number_of(path)

    async def remove(self, name: str, node: str, incarnation: str | None) -> None:
        """Remove a node of a broker; of one process alone, where that is given."""
        if self.owns(name, node, incarnation):
            del self._own[name, node]
            self._places.pop((name, node), None)
        while paths := [
            path
            for path, known in await self._announced(name, node)
            if incarnation is None or known is None or known.incarnation == incarnation
        ]:
            if await self._delete(paths):
                break
        await self._read(self._folder(codec.node_name(name)))

    async def _delete(self, paths: Sequence[str]) -> bool:
        """Delete all or none; False where one has just gone."""
        transaction = self._session.transaction()
        for path in paths:
            transaction.delete(path)
        try:
            await self._session.commit(transaction)
        except NoNodeError:
            return False
        return True

    async def _of_one_name(self, broker: Broker) -> tuple[list[str], Broker | None]:
        """What this process may replace, and the rightful other process, if any is."""
        ours, rival, is_first = [], None, False
        for path, known in await self._announced(broker.name, broker.node):
            if known is None or known.is_process(broker):
                ours.append(path)
                is_first |= known is not None
            elif rival is None and not is_first:
                rival = known
        return ours, rival

    async def _announced(self, name: str, node: str) -> list[tuple[str, Broker | None]]:
        """The paths of what a node has announced, in their order, and the processes.

        There is none where it is damaged, or goes with nobody's session.
        """
        folder = self._layout.broker(codec.node_name(name))
        await self._session.sync(folder)
        try:
            names = await self._session.children(folder)
        except NoNodeError:
            return []
        announced = []
        for one in sorted(filter(None, map(codec.parse_announcement, names))):
            if one.node != node:
                continue
            path = f"{folder}/{one.path}"
            with suppress(NoNodeError):
                announced.append((path, await self._holder(path)))
        return announced

    async def _holder(self, path: str) -> Broker | None:
        data, stat = await self._session.get(path)
        with suppress(DamagedError):
            return codec.load_broker(data) if stat.ephemeralOwner else None
        return None

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
        # Before the answer: who says that it is old already may be heard first.
        self._folders_changed = False
        try:
            nodes = await self._session.children(
                self._layout.brokers, self._watch_folders
            )
        except BaseException:
            self._folders_changed = True
            raise
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

    async def _read(
        self, folder: _Folder, placed: tuple[Broker, int] | None = None
    ) -> None:
        """Bring the nodes of one broker up to what the store has.

        Args:
            folder: Where they are.
            placed: One of ours that has just been announced, with its number.
        """
        async with folder.reading:
            if placed is not None:
                # Who has read before this could not find it.
                own, number = placed
                self._own[own.name, own.node] = own
                self._places[own.name, own.node] = number
            names = await self._watched(folder)
            found = sorted(filter(None, map(codec.parse_announcement, names)))
            for gone in folder.known.keys() - set(found):
                del folder.known[gone]
            for one in found:
                if one not in folder.known:
                    folder.known[one] = await self._get(f"{folder.path}/{one.path}")
            nodes: dict[str, Broker] = {}
            for known in filter(None, map(folder.known.get, found)):
                nodes.setdefault(known.node, known)
            self._look_for_own(folder.broker, {one.sequence for one in found})
            self._show(folder.broker, tuple(nodes.values()))

    async def _watched(self, folder: _Folder) -> list[str]:
        """What is in a folder; or nothing, and it is watched for being made."""
        while True:
            try:
                return await self._session.children(folder.path, folder.watch)
            except NoNodeError:
                if not await self._session.exists(folder.path, folder.watch):
                    return []

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

    def _look_for_own(self, broker: str, numbers: Collection[int]) -> None:
        """Notice which nodes of this process have lost their places."""
        for key, number in list(self._places.items()):
            if key[0] == broker and number not in numbers:
                del self._places[key]
                _log.warning("this node lost its place", broker=broker, node=key[1])
                self.missed(self._own[key])

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


def _nobody(_broker: Broker) -> None:
    """Nobody has it announced again."""
