"""Offsets in memory, by group, topic and queue: what every keeper of them looks up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Row = tuple[str, str, int]
"""Group, topic, queue id."""


class OffsetTable:
    """The readable half of `storage.offsets.Offsets`."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, int]]] = {}
        self._groups_of: dict[str, set[str]] = {}
        """By topic."""

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """The next offset to consume; None where the group never committed one."""
        topics = self._groups.get(group)
        if topics is None:
            return None
        queues = topics.get(topic)
        return None if queues is None else queues.get(queue_id)

    def queues(self, group: str, topic: str) -> dict[int, int]:
        """Queue id to offset of one group on one topic."""
        return dict(self._groups.get(group, {}).get(topic, {}))

    def topics(self, group: str) -> list[str]:
        """Topics on which a group has offsets, sorted."""
        return sorted(self._groups.get(group, ()))

    def groups(self) -> Iterator[str]:
        """Every group that has an offset."""
        return iter(tuple(self._groups))

    def groups_of(self, topic: str) -> Collection[str]:
        """Groups that have offsets on a topic, in no order."""
        return self._groups_of.get(topic, ())

    def furthest(self, topic: str, queue_id: int) -> tuple[int, str] | None:
        """The largest offset of a queue, and its group; None where there is none."""
        found = [
            (offset, group)
            for group in self.groups_of(topic)
            if (offset := self._groups[group][topic].get(queue_id)) is not None
        ]
        return max(found, default=None)

    def _set(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self._queues(group, topic)[queue_id] = offset

    def _queues(self, group: str, topic: str) -> dict[int, int]:
        """The offsets of a group on a topic, to be changed."""
        topics = self._groups.setdefault(group, {})
        queues = topics.get(topic)
        if queues is None:
            queues = topics[topic] = {}
            self._groups_of.setdefault(topic, set()).add(group)
        return queues

    def _remove(self, group: str, topic: str, queue_id: int) -> bool:
        """Drop an offset; whether it was the last one of its group on the topic."""
        topics = self._groups.get(group, {})
        queues = topics.get(topic, {})
        queues.pop(queue_id, None)
        if queues or topics.pop(topic, None) is None:
            return False
        groups = self._groups_of[topic]
        groups.discard(group)
        if not groups:
            del self._groups_of[topic]
        if not topics:
            del self._groups[group]
        return True

    def _rows(
        self, group: str | None, topic: str | None, queue_id: int | None
    ) -> list[Row]:
        """The offsets of a group, of a topic, or of one on the other.

        With a queue id, those of that queue alone.

        Raises:
            ValueError: Neither is given.
        """
        if group is None and topic is None:
            raise ValueError("forget needs a group, a topic, or both")
        if group is None and topic is not None:
            groups = [*self.groups_of(topic)]
        else:
            groups = [*self._groups] if group is None else [group]
        return [
            (one, each, number)
            for one in groups
            for each in (self.topics(one) if topic is None else [topic])
            for number in self._groups.get(one, {}).get(each, ())
            if queue_id in (None, number)
        ]
