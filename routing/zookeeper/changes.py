"""Changes of topics, groups and settings: each made once, or known not to be made.

A change is one transaction, all or nothing: the node as it was in the copy becomes what
it is to be, and the list of changes gets an entry. Where somebody else was first, it
begins again. Where the connection is lost meanwhile, the list tells whether the change
was made: its entry has an id that no other has.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NodeExistsError,
    NoNodeError,
)

from ropeway.routing.api import Group, RouteError, RouteStoreUnavailableError, Topic
from ropeway.routing.zookeeper import codec
from ropeway.routing.zookeeper.layout import refusal
from ropeway.routing.zookeeper.local_copy import Held
from ropeway.routing.zookeeper.session import LostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.routing.zookeeper.codec import Kind, Value
    from ropeway.routing.zookeeper.layout import Layout
    from ropeway.routing.zookeeper.local_copy import RouteCopy
    from ropeway.routing.zookeeper.session import Session

KEPT_CHANGES = 512
"""Who is further behind reads everything again. With each notice the names of all are
sent, 50 bytes each."""
TRIM_EVERY = 64

T = TypeVar("T", Topic, Group, str)


class Changes:
    """Makes changes, one after the other for each node."""

    def __init__(self, session: Session, layout: Layout, copy: RouteCopy) -> None:
        self._session = session
        self._layout = layout
        self._copy = copy
        prefix = secrets.token_hex(4)
        self._ids = (f"{prefix}{number}" for number in count())
        self._trimming: asyncio.Task[None] | None = None

    async def change(
        self,
        kind: Kind,
        node: str,
        change: Callable[[T | None], T | None],
        type_: type[T],
    ) -> None:
        """Change what a node holds, and have it in the copy.

        Raises:
            RouteError: It is damaged, or the servers refuse.
            RouteStoreUnavailableError: Whether it was changed cannot be found out.
        """
        while True:
            try:
                await self._session.wait_connected()
                await self._copy.refresh()
                held = self._copy.find(kind, node)
                old = held.value if held else None
                assert old is None or isinstance(old, type_), "nodes hold their kind"
                new = change(old)
                if new == old or await self._put(kind, node, held, new):
                    return
            except LostError:
                # Nothing was asked for yet but to read.
                continue
            except KazooException as error:
                raise RouteError(
                    f"ZooKeeper refuses a change of {self._layout.node(kind, node)}: "
                    f"{refusal(error)}"
                ) from error

    async def _put(
        self, kind: Kind, node: str, held: Held | None, new: Value | None
    ) -> bool:
        """Replace what the copy has; whether nobody else was first."""
        path = self._layout.node(kind, node)
        change_id = next(self._ids)
        transaction = self._session.transaction()
        transaction.check(self._layout.deletions, self._copy.deletions)
        if held is None:
            assert new is not None, "nothing does not become nothing"
            transaction.create(path, codec.dump(new))
        elif new is None:
            transaction.delete(path, held.version)
            transaction.set_data(self._layout.deletions, b"")
        else:
            transaction.set_data(path, codec.dump(new), held.version)
        entry = codec.change_prefix(kind, node, change_id)
        transaction.create(f"{self._layout.changes}/{entry}", sequence=True)
        before = self._copy.sequence
        try:
            results = await self._session.commit(transaction)
        except (BadVersionError, NodeExistsError, NoNodeError):
            return False
        except LostError:
            return await self._was_made(change_id, before)
        version = held.version + 1 if held else 0
        self._copy.put(kind, node, Held(new, version) if new is not None else None)
        self._trim(results[-1])
        return True

    async def _was_made(self, change_id: str, before: int) -> bool:
        """Whether a change was made that nobody heard of again."""
        while True:
            await self._session.wait_connected()
            try:
                await self._copy.refresh()
            except LostError:
                continue
            if self._copy.lists(change_id):
                return True
            if self._copy.listed_from <= before + 1:
                return False
            raise RouteStoreUnavailableError(
                "the connection to ZooKeeper was lost during a change, and so many "
                "others followed that it is not known whether it was made"
            )

    # The list of changes.

    def _trim(self, entry: str) -> None:
        """Forget old changes, now and then."""
        number = codec.number_of(entry)
        idle = self._trimming is None or self._trimming.done()
        if idle and number % TRIM_EVERY == 0 and number >= KEPT_CHANGES:
            self._trimming = asyncio.create_task(
                self._forget_until(number - KEPT_CHANGES)
            )

    async def _forget_until(self, number: int) -> None:
        # Where it fails, or somebody else does the same, a later change does it. All at
        # once, so that all who watch the list are woken once.
        with suppress(LostError, KazooException):
            transaction = self._session.transaction()
            for name in await self._session.children(self._layout.changes):
                if codec.number_of(name) <= number:
                    transaction.delete(f"{self._layout.changes}/{name}")
            await self._session.commit(transaction)
