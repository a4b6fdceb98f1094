"""The folders of a route store, and the look whether a place is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError

from ropeway.common.versions import newer
from ropeway.routing.api import NoRoutesError, RouteError
from ropeway.routing.zookeeper.codec import KINDS

if TYPE_CHECKING:
    from ropeway.routing.zookeeper.codec import Kind
    from ropeway.routing.zookeeper.session import Session

VERSION = 1
_MOST_NAMED = 3


class Layout:
    """Paths under one root; FORMAT.md draws them."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.version = f"{root}/version"
        self.brokers = f"{root}/brokers"
        self.changes = f"{root}/changes"
        self.deletions = f"{root}/deletions"

    def folder(self, kind: Kind) -> str:
        """Where topics, groups or settings are."""
        return f"{self.root}/{kind}"

    def node(self, kind: Kind, node: str) -> str:
        """Where one of them is."""
        return f"{self.root}/{kind}/{node}"

    def broker(self, node: str) -> str:
        """Where the nodes of a broker are."""
        return f"{self.brokers}/{node}"

    @property
    def folders(self) -> list[str]:
        """All that must be there."""
        kinds = map(self.folder, KINDS)
        return [*kinds, self.brokers, self.changes, self.deletions]


async def prepare(session: Session, layout: Layout, *, make: bool = True) -> None:
    """Make the folders where there is nothing, and check them where there is.

    Raises:
        NoRoutesError: There is nothing, and it is not to be made.
        RouteError: There is something else, or a newer version.
        LostError: The connection was lost.
    """
    try:
        if not await _is_ours(session, layout):
            if not make:
                raise NoRoutesError(f"{layout.root} in ZooKeeper holds nothing")
            await session.create(layout.root)
            transaction = session.transaction()
            transaction.create(layout.version, str(VERSION).encode())
            for path in layout.folders:
                transaction.create(path)
            try:
                await session.commit(transaction)
            except NodeExistsError:
                # Another node made them at the same time.
                await _is_ours(session, layout)
    except KazooException as error:
        raise RouteError(
            f"ZooKeeper refuses {layout.root}: {refusal(error)}"
        ) from error


def refusal(error: KazooException) -> str:
    """What a server says no with; kazoo's errors have names and no text."""
    return str(error) or type(error).__name__


async def _is_ours(session: Session, layout: Layout) -> bool:
    """Whether a store is there; False where nothing is."""
    await session.sync(layout.root)
    try:
        data, _ = await session.get(layout.version)
    except NoNodeError:
        try:
            found = sorted(await session.children(layout.root))
        except NoNodeError:
            found = []
        # Where the version has come meanwhile, so has all the rest.
        if not found or "version" in found:
            return False
        named = ", ".join(found[:_MOST_NAMED]) + (", ..." * (len(found) > _MOST_NAMED))
        raise RouteError(
            f"{layout.root} in ZooKeeper is not a route store: it holds {named}; "
            "allowed: a path that holds nothing, or a route store"
        ) from None
    text = data.decode(errors="replace")
    if text != str(VERSION):
        where = f"{layout.version} in ZooKeeper"
        raise RouteError(newer(where, repr(text), VERSION))
    return True
