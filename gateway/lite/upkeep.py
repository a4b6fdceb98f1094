"""Forgetting lite topics: what has expired, and what retention has taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.lite import lite_attributes, names
from ropeway.gateway.lite.store import Store
from ropeway.gateway.node.index_thread import IndexLostError
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.lite.follower import Follower, Parent
    from ropeway.gateway.lite.group_offsets import GroupOffsets
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.topics import Topics
    from ropeway.gateway.pop.order import OrderBook

log = structlog.get_logger(__name__)

_PAGE = 1000
"""What is forgotten in one step."""


class Upkeep:
    """Forgets what is due, and looks at nothing else.

    Args:
        topics: How parents are set up.
        follower: Knows their lite topics.
        progress: How far groups are.
        book: What is out.
        gone: Called with a parent and its lite topics that are forgotten.
    """

    def __init__(
        self,
        topics: Topics,
        follower: Follower,
        progress: GroupOffsets,
        book: OrderBook,
        gone: Callable[[str, list[str]], None],
    ) -> None:
        self._topics = topics
        self._follower = follower
        self._progress = progress
        self._book = book
        self._gone = gone

    async def clean(self, now_ms: int) -> None:
        """Forget what is due."""
        for parent in list(self._follower.parents.values()):
            topic = self._topics.get(parent.name)
            try:
                # Whether it expires depends on what is not noted yet.
                if topic is not None and not self._follower.is_behind(parent):
                    await self._expire(parent, topic, now_ms)
                    await self._cut(parent)
            except (IndexLostError, LogError) as error:
                log.warning(
                    "lite topics stay for now", topic=parent.name, reason=str(error)
                )

    async def _expire(self, parent: Parent, topic: ServedTopic, now_ms: int) -> None:
        after_ms = lite_attributes.expiry_ms(topic.setup.attributes)
        catalogue = parent.catalogue
        while after_ms is not None:
            lites = catalogue.take_unused(now_ms - after_ms, _PAGE)
            if not lites:
                break
            await self._drop(parent, lites)
        while lites := catalogue.take_empty(parent.firsts, _PAGE):
            await self._drop(parent, lites)

    async def _drop(self, parent: Parent, lites: list[str]) -> None:
        for lite in lites:
            self.forget_progress(parent.name, lite)
        self._gone(parent.name, lites)
        await self._follower.store.run(Store.drop, parent.name, lites)

    async def _cut(self, parent: Parent) -> None:
        for number, first in enumerate(parent.firsts):
            while await self._follower.store.run(
                Store.cut, parent.name, number, first, _PAGE
            ):
                pass

    def forget_progress(self, parent: str, lite: str) -> None:
        """Nobody has been in a lite topic."""
        queue = names.queue_name(parent, lite)
        for place in self._progress.places(queue):
            self._book.drop(place)
        self._progress.forget(queue)
