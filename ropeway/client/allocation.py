"""Who gets which queues: every consumer computes the same shares by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from ropeway.client.message import MessageQueue


def allocate_averagely(
    me: str, queues: Collection[MessageQueue], clients: Collection[str]
) -> list[MessageQueue]:
    """One client's share: a run of neighbouring queues, longer by one for the first.

    All clients of a group, in whatever language, must agree on this.

    Args:
        me: The client id whose share is asked for.
        queues: All queues of one topic.
        clients: All client ids of the group; has `me`.

    Source: AllocateMessageQueueAveragely.java, RocketMQ 5.3.4.
    """
    everyone = sorted(clients)
    size, more = divmod(len(queues), len(everyone))
    index = everyone.index(me)
    start = index * size + min(index, more)
    return sorted(queues)[start : start + size + (index < more)]
