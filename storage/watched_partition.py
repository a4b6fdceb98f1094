"""What partitions of each log have in common: a name, and who watches them grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.api import NoSuchPartitionError

if TYPE_CHECKING:
    from collections.abc import Callable


class WatchedPartition:
    """A partition that tells when it has grown.

    Args:
        topic: As RocketMQ names it.
        number: Within the topic.
    """

    __slots__ = ("appended_bytes", "gone", "number", "topic", "watchers")

    def __init__(self, topic: str, number: int) -> None:
        self.topic = topic
        self.number = number
        self.gone = False
        """Whether it was deleted."""
        self.appended_bytes = 0
        """See `storage.api`."""
        self.watchers: dict[Callable[[], None], None] = {}

    def watch(self, grown: Callable[[], None]) -> None:
        """Call `grown` each time `end` has moved."""
        if self.gone:
            raise self.deleted()
        self.watchers[grown] = None

    def unwatch(self, grown: Callable[[], None]) -> None:
        """Stop calling it."""
        self.watchers.pop(grown, None)

    def grown(self) -> None:
        """Tell all who watch."""
        for grown in tuple(self.watchers):
            grown()

    def deleted(self) -> NoSuchPartitionError:
        """What is raised where it is gone."""
        return NoSuchPartitionError(
            f"partition {self.number} of topic {self.topic} was deleted"
        )
