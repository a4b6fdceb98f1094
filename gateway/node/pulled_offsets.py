"""How far groups have pulled: what they were given, and may not have done yet.

It is in memory alone. Consumers of a broker that has started pull within seconds, and
until then what they have committed stands for it.

Source: ConsumerOffsetManager.commitPullOffset, RocketMQ 5.3.4.
"""

from __future__ import annotations


class PulledOffsets:
    """The next offset to pull of every group, topic and queue."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[tuple[str, int], int]] = {}

    def put(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """A group was given what stands before an offset."""
        queues = self._topics.get(topic)
        if queues is None:
            queues = self._topics[topic] = {}
        queues[group, queue_id] = offset

    def get(self, group: str, topic: str, queue_id: int) -> int:
        """The next offset to pull; 0 where nothing was pulled."""
        return self._topics.get(topic, {}).get((group, queue_id), 0)

    def forget(self, *, group: str | None = None, topic: str | None = None) -> None:
        """A group or a topic is gone, or a group has been moved in a topic."""
        for name in list(self._topics) if topic is None else [topic]:
            if group is None:
                self._topics.pop(name, None)
            else:
                queues = self._topics.get(name, {})
                for key in [key for key in queues if key[0] == group]:
                    del queues[key]
