"""Groups' progress, where a log has come back shorter than it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.node import names

if TYPE_CHECKING:
    from ropeway.gateway.node.topics import Topics
    from ropeway.storage.offsets import Offsets

log = structlog.get_logger(__name__)


_OF_PARTS = {
    names.SCHEDULE_GROUP,
    names.TIMER_GROUP,
    names.TRANSACTIONS_GROUP,
    names.BATCHES_GROUP,
}
"""Of these the log's end would say that all which is left was done: their parts look
for themselves what was not."""


class TakenBack:
    """The duty to point groups that are ahead of the log at its end.

    A power cut can take messages that were not synced yet and leave offsets behind
    them, and so can a backup. New messages get the same offsets again, and nobody may
    pass over those.
    """

    def __init__(self, offsets: Offsets, topics: Topics) -> None:
        self._offsets = offsets
        self._topics = topics

    async def take_over(self) -> None:
        """Take back what is ahead."""
        for group in self._offsets.groups():
            if group in _OF_PARTS:
                continue
            for name in self._offsets.topics(group):
                self._take_back(group, name)
        await self._offsets.flush()

    def _take_back(self, group: str, name: str) -> None:
        topic = self._topics.get(names.topic_of_progress(name))
        ends = [one.end for one in topic.partitions] if topic else []
        for queue_id, offset in self._offsets.queues(group, name).items():
            if queue_id < len(ends) and offset > ends[queue_id]:
                log.warning(
                    "group was ahead of the log",
                    group=group,
                    topic=name,
                    queue_id=queue_id,
                    offset=offset,
                    end=ends[queue_id],
                )
                self._offsets.commit(group, name, queue_id, ends[queue_id])

    async def give_up(self) -> None:
        """Nothing to end."""
