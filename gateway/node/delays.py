"""Where a message goes first that asks for a delay: a level's queue, or the timer.

Source: HookUtils.handleScheduleMessage, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.node.served_topic import ServedTopic
from ropeway.gateway.node.timer import pending_timers
from ropeway.gateway.node.timer.pending_timers import ASKED
from ropeway.gateway.wire import properties

if TYPE_CHECKING:
    from ropeway.gateway.node.schedule import Schedule
    from ropeway.gateway.node.timer.timer import Timer

DELAYING = ASKED | {properties.DELAY}
"""Properties by which a producer asks for a delay."""


class Diverted(msgspec.Struct, frozen=True, gc=False):
    """Where a message is stored, and with which properties, in wire form."""

    topic: ServedTopic
    queue_id: int
    text: str
    due_ms: int | None = None
    """Until when the timer keeps it; None where it is not there."""


class Delays:
    """The delays of a broker: by level, and by time."""

    def __init__(self, schedule: Schedule, timer: Timer) -> None:
        self._schedule = schedule
        self._timer = timer

    def divert(
        self,
        topic: ServedTopic,
        queue_id: int,
        pairs: dict[str, str],
        text: str,
        now_ms: int,
    ) -> Diverted:
        """Where a message goes first.

        Args:
            topic: Where it is for.
            queue_id: Which queue of it.
            pairs: Its properties; where it has a level, they get its real topic and
                queue.
            text: The same in wire form.
            now_ms: The time, in milliseconds since 1970.

        Returns:
            What came, where the message is to be delivered at once.

        Raises:
            BadTimeError: The time is no number, or too far away.
        """
        if properties.DELAY in pairs:
            place = Diverted(*self._schedule.divert(topic, queue_id, pairs, text))
            if place.topic is not topic:
                return place
        due_ms = self.asked_ms(pairs, now_ms)
        if due_ms is None:
            return Diverted(topic, queue_id, text)
        text = pending_timers.message_text(due_ms, topic.name, queue_id, pairs, text)
        return Diverted(self._timer.topic, 0, text, due_ms)

    def asked_ms(self, pairs: dict[str, str], now_ms: int) -> int | None:
        """When a message is to be delivered; see `waiting.asked_ms`."""
        return pending_timers.asked_ms(pairs, now_ms, self._timer.max_delay_ms)
