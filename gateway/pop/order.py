"""The book of queues that are popped in order: what is out blocks what comes next.

A queue has one *page*: what the last pop in order took. While one of its messages is
neither acknowledged nor visible again, the queue gives nothing, but for the same
attempt, whose answer may have been lost. Progress goes to the first message that is
not acknowledged, so whoever pops next begins there.

Source: ConsumerOrderInfoManager.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Place = tuple[str, str, int]
"""Group, topic, queue id."""

UNUSED_MS = 86_400_000
"""A page that nobody has touched for so long is torn out."""


class Page:
    """What the last pop in order took of a queue."""

    __slots__ = (
        "attempt",
        "counts",
        "invisible_ms",
        "offsets",
        "open",
        "pop_ms",
        "used_ms",
        "visible_ms",
    )

    def __init__(
        self,
        attempt: str | None,
        pop_ms: int,
        invisible_ms: int,
        offsets: Sequence[int],
        counts: dict[int, int],
    ) -> None:
        self.attempt = attempt
        self.pop_ms = pop_ms
        self.invisible_ms = invisible_ms
        self.offsets = tuple(offsets)
        self.open = set(offsets)
        self.counts = counts
        """How often each of them came before, of those that did."""
        self.visible_ms: dict[int, int] = {}
        """When messages are visible whose time was changed."""
        self.used_ms = pop_ms

    @property
    def free_ms(self) -> int:
        """When all that is open is visible again; 0 where nothing is."""
        usual_ms = self.pop_ms + self.invisible_ms
        return max(
            (self.visible_ms.get(offset, usual_ms) for offset in self.open), default=0
        )

    @property
    def next_offset(self) -> int:
        """Where the group goes on."""
        return min(self.open, default=self.offsets[-1] + 1)


class OrderBook:
    """The pages of all queues that are popped in order."""

    def __init__(self) -> None:
        self._pages: dict[Place, Page] = {}
        self._free: list[tuple[int, Place]] = []
        self.wake: Callable[[], None] = lambda: None
        """Called when `next_ms` may be earlier than it was."""
        self.get = self._pages.get
        """The page of a group, a topic and a queue id; None where there is none."""

    def __len__(self) -> int:
        return len(self._pages)

    def blocks(self, place: Place, attempt: str | None, now_ms: int) -> bool:
        """Whether a pop gets nothing of a queue."""
        page = self._pages.get(place)
        if page is None or (attempt is not None and attempt == page.attempt):
            return False
        return now_ms < page.free_ms

    def note(
        self,
        place: Place,
        attempt: str | None,
        pop_ms: int,
        invisible_ms: int,
        offsets: Sequence[int],
    ) -> Page:
        """A pop took messages; the page says how often each has come before."""
        counts: dict[int, int] = {}
        before = self._pages.get(place)
        if before is not None:
            if attempt is not None and attempt == before.attempt:
                counts = before.counts
            else:
                known = set(before.offsets)
                counts = {
                    offset: before.counts.get(offset, 0) + 1
                    for offset in offsets
                    if offset in known
                }
        page = Page(attempt, pop_ms, invisible_ms, offsets, counts)
        self._pages[place] = page
        self.look_at(place, page.free_ms)
        return page

    def look_at(self, place: Place, free_ms: int) -> None:
        """Have `take_free` give a queue at a time."""
        if free_ms:
            heapq.heappush(self._free, (free_ms, place))
            self.wake()

    @property
    def next_ms(self) -> float:
        """When `take_free` may give something next; infinite where nothing waits."""
        return self._free[0][0] if self._free else math.inf

    @property
    def waits(self) -> bool:
        """Whether `take_free` will give something."""
        return bool(self._free)

    def take_free(self, now_ms: int) -> list[Place]:
        """Queues that are free again since it was asked last."""
        free = []
        while self._free and self._free[0][0] <= now_ms:
            _, place = heapq.heappop(self._free)
            if not self.blocks(place, None, now_ms):
                free.append(place)
        return free

    def find(self, place: Place, pop_ms: int, offset: int) -> Page | None:
        """The page where a message is open that a pop took at a time, if any."""
        page = self._pages.get(place)
        if page is None or page.pop_ms != pop_ms or offset not in page.open:
            return None
        return page

    def block(self, place: Place, offset: int, until_ms: int) -> None:
        """A queue gives nothing until a time: who led before handed messages out."""
        # No receipt is of that time: those of before are not known any more.
        self._pages[place] = Page(None, 0, until_ms, (offset,), {})
        self.look_at(place, until_ms)

    def forget(self, *, group: str | None = None, topic: str | None = None) -> None:
        """A group or a topic is gone, or a group was moved in a topic."""
        for place in list(self._pages):
            if group in (None, place[0]) and topic in (None, place[1]):
                del self._pages[place]

    def drop(self, place: Place) -> None:
        """A group was moved in a queue."""
        self._pages.pop(place, None)

    def leave(self, topic: str, queue_id: int) -> None:
        """A queue is not this broker's any more, or only since now."""
        for place in list(self._pages):
            if place[1:] == (topic, queue_id):
                del self._pages[place]

    def clean(self, now_ms: int) -> None:
        """Tear out pages that nobody uses."""
        for place, page in list(self._pages.items()):
            if now_ms - max(page.used_ms, page.free_ms) > UNUSED_MS:
                del self._pages[place]

    def clear(self) -> None:
        """Another node leads."""
        self._pages.clear()
        self._free.clear()
