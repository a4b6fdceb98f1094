"""Which messages a pull wants, and whether its group still wants them.

Source: PullMessageProcessor.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.processors.context import Context, Refusal
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pull import SUBSCRIPTION_FLAG, PullMessage

if TYPE_CHECKING:
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.subscriptions import Subscription
    from ropeway.routing.api import Group


def of_heartbeats(request: PullMessage, context: Context, group: Group) -> Subscription:
    """What a pull wants that does not say so: what the group's heartbeats said.

    Raises:
        Refusal: They did not, or not as it has to be.
        NotCompiledError: It takes time to read.
    """
    limits = context.node.config.requests
    connected = context.node.clients.consumer_group(request.consumer_group)
    if connected is None:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"the consumer's group info not exist: {request.consumer_group} has sent "
            "no heartbeat",
        )
    if connected.data.is_broadcasting and not group.consume_broadcast_enable:
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            f"the consumer group[{request.consumer_group}] can not consume by "
            "broadcast way",
        )
    known = connected.subscription(request.topic, limits)
    if known is None:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_NOT_EXIST,
            f"the consumer's subscription not exist: group {request.consumer_group} "
            f"has not subscribed to {request.topic}; do its members differ?",
        )
    if known.version < request.sub_version:
        raise Refusal(
            ResponseCode.SUBSCRIPTION_NOT_LATEST,
            "the consumer's subscription not latest",
        )
    if known.problem is not None:
        raise Refusal(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "the broker's consumer filter data is not exist, your expression is "
            f"wrong: {known.problem}",
        )
    return known


def is_outdated(
    request: PullMessage,
    context: Context,
    topic: ServedTopic,
    group: Group,
    subscription: Subscription,
) -> bool:
    """Whether the group wants something else, or may, since the pull came.

    What has come since then is for a new pull: a client filters by what it wanted
    when it asked, so an answer now would take it behind what it wants by now. And
    a group or topic that was changed may not be read any more.
    """
    node = context.node
    if (
        node.groups.get(group.name) is not group
        or node.topics.get(topic.name) is not topic
    ):
        return True
    if request.sys_flag & SUBSCRIPTION_FLAG:
        return False
    connected = node.clients.consumer_group(group.name)
    if connected is None:
        return True
    known = connected.subscriptions.get(topic.name)
    # One with a long expression is read anew for each pull.
    return known is not subscription and (
        known is None
        or (known.version, known.expression)
        != (subscription.version, subscription.expression)
    )
