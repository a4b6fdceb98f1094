"""Topics by the numbers of their partitions, for message ids that name no topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic


class ByPartition:
    """Which served topics have a partition of a number."""

    def __init__(self) -> None:
        self._topics: dict[int, dict[str, ServedTopic]] = {}

    def add(self, topic: ServedTopic) -> None:
        """Know a topic."""
        for partition in topic.partitions:
            self._topics.setdefault(partition.number, {})[topic.name] = topic

    def discard(self, topic: ServedTopic) -> None:
        """Know it no more."""
        for partition in topic.partitions:
            self._topics[partition.number].pop(topic.name, None)

    def clear(self) -> None:
        """Know none."""
        self._topics.clear()

    def find(self, number: int, *, retry: bool) -> list[ServedTopic]:
        """The topics that a message id may mean: those with such a partition."""
        return [
            topic
            for name, topic in sorted(self._topics.get(number, {}).items())
            if name.startswith(names.RETRY_PREFIX) == retry
            and name not in names.NOT_FOR_READING
        ]
