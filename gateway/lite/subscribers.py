"""Who subscribes to which lite topics, and what may be new to whom.

A subscriber has a set of lite topics that *may* have something for it. A new message,
an acknowledgement and the end of an invisible time put a lite topic there, for each
subscriber of a group; a pop takes it out and looks. So no look is at a lite topic where
nothing has happened, and the set is never larger than the subscription: of a client
that wants all lite topics, than there are.

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
        "wants_all",
    )

    def __init__(self, client_id: str, group: str, parent: str) -> None:
        self.client_id = client_id
        self.group = group
        self.parent = parent
        self.lites: set[str] = set()
        """Those that it named."""
        self.wants_all = False
        """Whether it wants every lite topic of the parent, and names none."""
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

    def wants(self, lite: str) -> bool:
        """Whether it subscribes to a lite topic."""
        return self.wants_all or lite in self.lites


class Subscribers:
    """Every subscription."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], Subscriber] = {}
        self._lites: dict[tuple[str, str], dict[Subscriber, None]] = {}
        self._of_all: dict[str, dict[Subscriber, None]] = {}
        """Who wants all lite topics of a parent."""

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
        return [
            one for one in self._wanting(parent, lite) if group in (None, one.group)
        ]

    def _wanting(self, parent: str, lite: str) -> Iterator[Subscriber]:
        yield from self._lites.get((parent, lite), ())
        yield from self._of_all.get(parent, ())

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

    def add_all(self, subscriber: Subscriber, lites: Iterable[str]) -> None:
        """A client wants all lite topics, where it named some before.

        Args:
            subscriber: The client.
            lites: Those that may have something for it.
        """
        for lite in list(subscriber.lites):
            self.drop(subscriber, lite)
        subscriber.wants_all = True
        self._of_all.setdefault(subscriber.parent, {})[subscriber] = None
        subscriber.ready.update(dict.fromkeys(lites))
        subscriber.news.set()

    def drop_all(self, subscriber: Subscriber) -> None:
        """A client wants only what it names."""
        if not subscriber.wants_all:
            return
        subscriber.wants_all = False
        subscriber.ready.clear()
        others = self._of_all[subscriber.parent]
        del others[subscriber]
        if not others:
            del self._of_all[subscriber.parent]

    def forget(self, parent: str, lites: Iterable[str]) -> None:
        """Lite topics are gone, and nothing of them is news to who wants all."""
        for one in self._of_all.get(parent, ()):
            for lite in lites:
                one.ready.pop(lite, None)

    def remove(self, subscriber: Subscriber) -> None:
        """A client is gone."""
        self.drop_all(subscriber)
        for lite in list(subscriber.lites):
            self.drop(subscriber, lite)
        self._clients.pop((subscriber.group, subscriber.client_id), None)
        subscriber.news.set()

    def announce(
        self, parent: str, lites: Iterable[str], group: str | None = None
    ) -> None:
        """Lite topics may have something, for a group or for all."""
        for lite in lites:
            for one in self._wanting(parent, lite):
                if group in (None, one.group):
                    one.ready[lite] = None
                    one.news.set()

    def clear(self) -> None:
        """Another node leads."""
        for one in self:
            self.remove(one)
