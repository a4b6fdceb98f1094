"""Every lite topic that has messages, in memory: a parent's, by when they were used.

Those that have had no message for longest are in front. So what has expired is found
without a look at any other, and each message moves its lite topic to the end. A lite
topic takes about 400 bytes.

All of this is data without a clock, a disk or a network.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from ropeway.gateway.lite.store import Known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.gateway.lite.store import Noted


class LiteTopic:
    """One lite topic.

    Args:
        ends: One past its last message, by queue.
        last_ms: When its last message was stored, in milliseconds since 1970.
    """

    __slots__ = ("ends", "last_ms")

    def __init__(self, ends: dict[int, int], last_ms: int) -> None:
        self.ends = ends
        self.last_ms = last_ms


class Catalogue:
    """The lite topics of one parent."""

    def __init__(self, known: Iterable[Known] = ()) -> None:
        self._topics: OrderedDict[str, LiteTopic] = OrderedDict(
            (one.lite, LiteTopic(one.ends, one.last_ms))
            for one in sorted(known, key=lambda one: one.last_ms)
        )
        self.get = self._topics.get
        """A lite topic; None where it has no messages."""

    def __len__(self) -> int:
        return len(self._topics)

    def __contains__(self, lite: str) -> bool:
        return lite in self._topics

    def names(self) -> list[str]:
        """All of them, those that were not used for longest in front."""
        return list(self._topics)

    def note(self, queue_id: int, messages: Iterable[Noted]) -> list[str]:
        """Messages of a queue have come; which lite topics they are of."""
        touched: dict[str, None] = {}
        for one in messages:
            topic = self._topics.get(one.lite)
            if topic is None:
                topic = self._topics[one.lite] = LiteTopic({}, 0)
            topic.ends[queue_id] = one.offset + 1
            topic.last_ms = max(topic.last_ms, one.store_ms)
            touched[one.lite] = None
        for lite in touched:
            self._topics.move_to_end(lite)
        return list(touched)

    def known(self, lites: Iterable[str]) -> list[Known]:
        """Lite topics as the store keeps them."""
        return [
            Known(lite, topic.last_ms, topic.ends)
            for lite in lites
            if (topic := self._topics.get(lite)) is not None
        ]

    def take_unused(self, before_ms: int, max_count: int) -> list[str]:
        """Forget those whose last message is older: the oldest, up to so many."""
        found: list[str] = []
        while self._topics and len(found) < max_count:
            lite, topic = next(iter(self._topics.items()))
            if topic.last_ms >= before_ms:
                break
            del self._topics[lite]
            found.append(lite)
        return found

    def take_empty(self, firsts: list[int], max_count: int) -> list[str]:
        """Forget those that have no message left: the oldest, up to so many.

        Args:
            firsts: The first message that is there, by queue.
            max_count: Forget no more.
        """
        found: list[str] = []
        while self._topics and len(found) < max_count:
            lite, topic = next(iter(self._topics.items()))
            if any(
                queue_id < len(firsts) and end > firsts[queue_id]
                for queue_id, end in topic.ends.items()
            ):
                break
            del self._topics[lite]
            found.append(lite)
        return found
