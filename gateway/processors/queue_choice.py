"""Which queue a message goes to: its client says, or its lite topic, or its priority.

Source: SendMessageProcessor.java, RocketMQ 5.5.0, which looks for a priority in
messages to topics of every type. There it changes nothing but the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.lite import names as lite_names
from ropeway.gateway.node import message_types
from ropeway.gateway.processors.context import Context, Refusal
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.wire.commands.send import SendMessage


def queue_of(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> int:
    """The queue that a message goes to.

    Raises:
        Refusal: There is no such queue, or the message has no lite topic that can be.
    """
    if queue_id >= len(topic.partitions):
        raise _not_here(queue_id, context, topic)
    if topic.of_lites:
        return _of_lite_topic(request, context, topic, queue_id)
    if topic.of_priorities and not request.batch:
        return _by_priority(request, topic, queue_id)
    return queue_id


def _not_here(queue_id: int, context: Context, topic: ServedTopic) -> Refusal:
    """What is said of a queue that this broker does not have."""
    known = context.node.routes.topics.get(topic.name)
    if known is not None and queue_id < known.write_queue_nums:
        # It has moved since the client saw the route, or is just moving; clients
        # try another queue after this, and look at the route again.
        return Refusal(
            ResponseCode.SERVICE_NOT_AVAILABLE,
            f"queue {queue_id} of topic {topic.name} is not on broker "
            f"{context.node.config.broker} now; look at its route again",
        )
    return Refusal(
        ResponseCode.INVALID_PARAMETER,
        f"request queueId[{queue_id}] is illegal, topic {topic.name} has queues "
        f"0 to {len(topic.partitions) - 1}",
    )


def _of_lite_topic(
    request: SendMessage, context: Context, topic: ServedTopic, queue_id: int
) -> int:
    """The queue of a lite topic, whatever the client has chosen."""
    if request.batch or properties.LITE_TOPIC not in request.properties:
        return queue_id
    name = properties.parse(request.properties).get(properties.LITE_TOPIC, "")
    if complaint := lite_names.complaint(name):
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, complaint)
    if not context.node.lite.admits(topic, name):
        raise Refusal(
            ResponseCode.LMQ_QUOTA_EXCEEDED,
            f"lite topic {name} would be one more; allowed: "
            f"{context.node.config.limits.lite_topics}, limits.lite_topics",
        )
    return lite_names.number(name) % (topic.setup.write_queue_nums or 1)


def _by_priority(request: SendMessage, topic: ServedTopic, queue_id: int) -> int:
    """The queue of a message with a priority: the highest go to the last one."""
    if properties.PRIORITY not in request.properties:
        return queue_id
    pairs = properties.parse(request.properties)
    priority = pairs.get(properties.PRIORITY, "")
    if (
        not priority.isdecimal()
        or message_types.type_of(pairs) != message_types.PRIORITY
    ):
        return queue_id
    # Of more than nine digits it is above any queue in any case.
    return min(int(priority[:9]), max(topic.setup.write_queue_nums, 1) - 1)
