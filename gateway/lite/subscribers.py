"""Who subscribes to which lite topics, and what may be new to whom.

A subscriber has a set of lite topics that *may* have something for it. A new message,
an acknowledgement and the end of an invisible time put a lite topic there, for each
subscriber of a group; a pop takes it out and looks. So no look is at a lite topic where
nothing has happened, and the set is never larger than the subscription.

All of this is data without a clock, a disk or a network.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ropeway.acl.api import Principal


class Subscriber:
    """A client of a group, and the lite topics of a parent that it wants.

    Args:
        client_id: What it calls itself.
        group: The group.
        parent: The topic.
    """

    __slots__ = (
        "attempt",
        "client_id",
        "given",
        "group",
        "lites",
        "news",
        "owner",
        "parent",
        "ready",
        "seen_ms",
    )

    def __init__(self, client_id: str, group: str, parent: str) -> None:
        self.client_id = client_id
        self.group = group
        self.parent = parent
        self.lites: set[str] = set()
        self.ready: dict[str, None] = {}
        """Those that may have something, in the order in which it happened."""
        self.news = asyncio.Event()
        """Set when there is one more, and when the subscription ends."""
        self.seen_ms = 0
        """When it was heard of last."""
        self.owner: Principal | None = None
        """Whose client it is, where access control is on."""
        self.attempt: str | None = None
        self.given: tuple[str, ...] = ()
        """What its last pop took, by that attempt."""


class Subscribers:
    """Every subscription."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], Subscriber] = {}
        self._lites: dict[tuple[str, str], dict[Subscriber, None]] = {}

    def __iter__(self) -> Iterator[Subscriber]:
        return iter(list(self._clients.values()))

    def find(self, group: str, client_id: str) -> Subscriber | None:
        """A client's subscription; None where it has none."""
        return self._clients.get((group, client_id))

    def get(self, group: str, client_id: str, parent: str) -> Subscriber:
        """The same, made where it is missing or of another topic."""
        found = self._clients.get((group, client_id))
        if found is not None and found.parent != parent:
            self.remove(found)
            found = None
        if found is None:
            found = Subscriber(client_id, group, parent)
            self._clients[group, client_id] = found
        return found

    def of(self, parent: str, lite: str, group: str | None = None) -> list[Subscriber]:
        """Who subscribes to a lite topic, in a group or in any."""
        found = self._lites.get((parent, lite), ())
        return [one for one in found if group in (None, one.group)]

    def add(self, subscriber: Subscriber, lite: str) -> bool:
        """A client wants a lite topic; False where it did before."""
        if lite in subscriber.lites:
            return False
        subscriber.lites.add(lite)
        self._lites.setdefault((subscriber.parent, lite), {})[subscriber] = None
        return True

    def drop(self, subscriber: Subscriber, lite: str) -> bool:
        """A client wants a lite topic no more; False where it did not before."""
        if lite not in subscriber.lites:
            return False
        subscriber.lites.discard(lite)
        subscriber.ready.pop(lite, None)
        key = (subscriber.parent, lite)
        others = self._lites[key]
        del others[subscriber]
        if not others:
            del self._lites[key]
        return True

    def remove(self, subscriber: Subscriber) -> None:
        """A client is gone."""
        for lite in list(subscriber.lites):
            self.drop(subscriber, lite)
        self._clients.pop((subscriber.group, subscriber.client_id), None)
        subscriber.news.set()

    def announce(
        self, parent: str, lites: Iterable[str], group: str | None = None
    ) -> None:
        """Lite topics may have something, for a group or for all."""
        for lite in lites:
            for one in self._lites.get((parent, lite), ()):
                if group in (None, one.group):
                    one.ready[lite] = None
                    one.news.set()

    def clear(self) -> None:
        """Another node leads."""
        for one in self:
            self.remove(one)
