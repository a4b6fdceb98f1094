"""Headers of administering what groups have consumed, and how."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST)
class CreateGroupList(Header, frozen=True):
    """Create consumer groups, or change them: `bodies.GroupConfigList`.

    Source: SubscriptionGroupList.java, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG)
class GetGroupConfig(Header, frozen=True):
    """Ask how a group is set up; answered by `bodies.GroupConfig`.

    Source: GetSubscriptionGroupConfigRequestHeader.java, RocketMQ 5.3.4.
    """

    group: str


@request(RequestCode.QUERY_TOPICS_BY_CONSUMER)
class QueryTopicsByConsumer(Header, frozen=True):
    """Ask which topics a group has offsets in; answered by `bodies.TopicList`.

    Source: QueryTopicsByConsumerRequestHeader.java, RocketMQ 5.3.4.
    """

    group: str


@request(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER)
class QuerySubscriptionByConsumer(Header, frozen=True):
    """Ask what a group wants of a topic; answered by `bodies.SubscriptionData`.

    Source: QuerySubscriptionByConsumerRequestHeader.java, RocketMQ 5.3.4.
    """

    group: str
    topic: str | None = None


@request(RequestCode.QUERY_CONSUME_TIME_SPAN)
class QueryConsumeTimeSpan(Header, frozen=True):
    """Ask how old a group's unread messages are; answered by QueueTimeSpans.

    Source: QueryConsumeTimeSpanRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
    group: str


@request(RequestCode.QUERY_CORRECTION_OFFSET)
class QueryCorrectionOffset(Header, frozen=True):
    """Ask for the lowest offsets of other groups beside a group's own.

    Source: QueryCorrectionOffsetHeader.java, RocketMQ 5.3.4.
    """

    compare_group: str
    topic: str
    filter_groups: str | None = None
    """Joined by commas."""


@request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET)
class ResetOffset(Header, frozen=True):
    """Move a group's offsets to a time, or one queue's to an offset.

    Source: ResetOffsetRequestHeader.java, RocketMQ 5.3.4.
    """

    group: str
    topic: str
    timestamp: I64
    """Milliseconds since 1970; -1: to the end."""
    is_force: bool
    """Whether offsets may also go forward."""
    queue_id: I32 = -1
    """Below 0: all queues."""
    offset: I64 | None = None


@request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS)
class GetConsumerStatus(Header, frozen=True):
    """Ask a group's clients where they are in a topic.

    Source: GetConsumerStatusRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
    group: str
    client_addr: str | None = None


@request(RequestCode.CLONE_GROUP_OFFSET)
class CloneGroupOffset(Header, frozen=True):
    """Copy a group's offsets to another group.

    Source: CloneGroupOffsetRequestHeader.java, RocketMQ 5.3.4.
    """

    src_group: str
    dest_group: str
    topic: str | None = None
    """None: all topics that the source group has offsets in."""
    offline: bool = False


@request(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN)
class UpdateGroupForbidden(Header, frozen=True):
    """Forbid a group to read a topic, or allow it; None only asks.

    Source: UpdateGroupForbiddenRequestHeader.java, RocketMQ 5.3.4.
    """

    group: str
    topic: str
    readable: bool | None = None


@request(RequestCode.GET_ALL_CONSUMER_OFFSET)
class GetAllConsumerOffset(Header, frozen=True):
    """Ask for all offsets of all groups, as a slave broker does.

    Source: AdminBrokerProcessor.getAllConsumerOffset, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
class GetAllMessageRequestMode(Header, frozen=True):
    """Ask which groups pop which topics, as a slave broker does.

    Source: AdminBrokerProcessor.getAllMessageRequestMode, RocketMQ 5.3.4.
    """
