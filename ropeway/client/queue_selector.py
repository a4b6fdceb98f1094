"""Which queue a message goes to: chosen by its sender, by its key, or in turn."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

from ropeway.client.message import Message, MessageQueue
from ropeway.gateway.wire.properties import tag_hash

Selector = Callable[[Sequence[MessageQueue], Message], MessageQueue]
"""Chooses among all queues of a topic that can be written to, sorted."""


def select_by_sharding_key(
    queues: Sequence[MessageQueue], message: Message
) -> MessageQueue:
    """The queue of a sharding key: the one that Java's SelectMessageQueueByHash takes.

    Source: SelectMessageQueueByHash.java, RocketMQ 5.3.4.
    """
    return queues[abs(tag_hash(message.sharding_key or "")) % len(queues)]


def select_by_keys(queues: Sequence[MessageQueue], message: Message) -> MessageQueue:
    """The queue of a message's keys, for compacted topics: one key, one queue.

    It is the one that Java's SelectMessageQueueByHash takes for `message.getKeys()`.
    """
    return queues[abs(tag_hash(" ".join(message.keys))) % len(queues)]


class QueueChoice:
    """Chooses queues for one producer: in turn, where a message leaves the choice."""

    def __init__(self) -> None:
        # Producers that start together must not all begin with the same queue.
        self._count = itertools.count(random.randrange(1 << 16))  # noqa: S311 - no secret

    def choose(
        self,
        queues: Sequence[MessageQueue],
        message: Message,
        selector: Selector | None,
        avoid: MessageQueue | None = None,
    ) -> MessageQueue:
        """The queue for a message.

        Args:
            queues: Where it may go, sorted; at least one.
            message: Its sharding key decides, where it has one.
            selector: Decides before that, where there is one.
            avoid: A queue that has just failed; left out with its broker, as far as
                there are others and nothing else decides.
        """
        if selector is not None:
            return selector(queues, message)
        if message.sharding_key is not None:
            return select_by_sharding_key(queues, message)
        if avoid is not None:
            others = [q for q in queues if q.broker_name != avoid.broker_name]
            queues = others or [q for q in queues if q != avoid] or queues
        return queues[next(self._count) % len(queues)]
