"""How far groups are in lite topics, beside all other progress and apart from it.

It is kept under a name of the group that no client asks for: a group may be in a
hundred thousand lite topics, and lists of its topics have none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names

if TYPE_CHECKING:
    from ropeway.gateway.pop.order import Place
    from ropeway.storage.offsets import Offsets


class GroupOffsets:
    """How far groups are in lite topics.

    Args:
        offsets: Keeps it.
    """

    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets

    def get(self, place: Place) -> int | None:
        """The next offset of a group in a lite topic; None before the first.

        Args:
            place: Group, `names.queue_name`, queue id.
        """
        group, queue, queue_id = place
        return self._offsets.get(names.LITE_SIGN + group, queue, queue_id)

    def commit(self, place: Place, offset: int) -> None:
        """A group goes on there.

        Raises:
            LogError: It cannot be kept now.
        """
        group, queue, queue_id = place
        self._offsets.commit(names.LITE_SIGN + group, queue, queue_id, offset)

    def places(self, queue: str) -> list[Place]:
        """Where groups have progress in a lite topic."""
        return [
            (kept.removeprefix(names.LITE_SIGN), queue, queue_id)
            for kept in self._offsets.groups()
            if kept.startswith(names.LITE_SIGN)
            for queue_id in self._offsets.queues(kept, queue)
        ]

    def forget(self, queue: str) -> None:
        """A lite topic is gone."""
        self._offsets.forget(topic=queue)

    def forget_group(self, group: str) -> None:
        """A group is gone."""
        self._offsets.forget(group=names.LITE_SIGN + group)
