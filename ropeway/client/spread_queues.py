"""Queues of a topic that is on several brokers, as those of a mirror on one broker.

Producers that choose a queue by a key number the queues of all brokers in this order,
and so find the same one in the mirror.

Source: TopicRouteData2TopicPublishInfo of MQClientInstance.java, and compareTo of
QueueData.java, RocketMQ 5.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.client.message import MessageQueue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.gateway.wire.bodies import QueueData, TopicConfig


def in_order(
    topic: str, brokers: Mapping[str, TopicConfig | QueueData]
) -> list[MessageQueue]:
    """Return all queues of a topic; the number of each is its queue id in a mirror.

    Args:
        topic: Its name.
        brokers: How many queues it has, by the broker's name.
    """
    return [
        MessageQueue(topic, broker, queue_id)
        for broker, one in sorted(brokers.items())
        for queue_id in range(max(one.read_queue_nums, one.write_queue_nums))
    ]
