"""Which queue a message group has: the same one as by RocketMQ's proxy.

So groups stay in order when a topic moves here from RocketMQ, or back.

Source: SendMessageQueueSelector in SendMessageActivity.java, RocketMQ 5.5.0, and
Hashing.consistentHash of Guava: "A Fast, Minimal Memory, Consistent Hash Algorithm",
Lamping and Veach, arXiv 1406.2294.
"""

from __future__ import annotations

from ropeway.gateway.wire.properties import tag_hash

_MASK = (1 << 64) - 1


def queue_of(group: str, queues: int) -> int:
    """Return the queue of a message group.

    Args:
        group: Its name.
        queues: How many the topic has, of all its brokers.
    """
    state, bucket, following = tag_hash(group) & _MASK, 0, 0
    while following < queues:
        bucket = following
        state = (state * 2862933555777941757 + 1) & _MASK
        following = int((bucket + 1) / (((state >> 33) + 1) / (1 << 31)))
    return bucket
