"""Headers of administering topics and groups on a broker."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32
from ropeway.gateway.wire.header import Header, request

HELD = "held"
"""A value of `CreateTopic.writes` that is never kept: for a moment nobody stores."""
FINISHED = "finished"
"""Likewise, of a topic that was cut over: it came from nowhere."""


@request(RequestCode.UPDATE_AND_CREATE_TOPIC)
class CreateTopic(Header, frozen=True):
    """Create a topic, or change one.

    Source: CreateTopicRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
    default_topic: str
    read_queue_nums: I32
    write_queue_nums: I32
    perm: I32
    """Sum of 4 read, 2 write, 1 inherit."""
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: I32 | None = None
    order: bool = False
    attributes: str | None = None
    force: bool = False
    all_brokers: bool | None = None
    """Ours, unknown to others: all brokers are told the same, so a new topic may be
    made on all of them by the first."""
    begins: str | None = None
    """Likewise: the offset at which each queue begins, from queue 0 on, joined by
    commas. Queues that are there and begin elsewhere are refused."""
    writes: str | None = None
    """Likewise, of a mirror: where producers' messages are stored from now on, as of
    `routing.api.Topic`; or `HELD`: for a moment nowhere, senders wait."""
    hold: str | None = None
    """Likewise: names the moment. Only while it lasts they can be stored elsewhere."""
    ends: str | None = None
    """Likewise, of a topic that goes back to a source: up to which offset the source
    has each queue, from queue 0 on, joined by commas."""


@request(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST)
class CreateTopicList(Header, frozen=True):
    """Create topics, or change them: `bodies.TopicConfigList`.

    Source: CreateTopicListRequestHeader.java, RocketMQ 5.3.4.
    """


@request(RequestCode.DELETE_TOPIC_IN_BROKER)
class DeleteTopic(Header, frozen=True):
    """Delete a topic with its messages.

    Source: DeleteTopicRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str


@request(RequestCode.GET_TOPIC_CONFIG)
class GetTopicConfig(Header, frozen=True):
    """Ask how a topic is set up; answered by `bodies.TopicConfig`.

    Source: GetTopicConfigRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str


class AllTopicConfigReply(Header, frozen=True):
    """How many topics there are, of which the body has a part; 4.x does not say.

    Source: GetAllTopicConfigResponseHeader.java, RocketMQ 5.3.4.
    """

    total_topic_num: I32 | None = None


@request(RequestCode.GET_ALL_TOPIC_CONFIG, reply=AllTopicConfigReply)
class GetAllTopicConfig(Header, frozen=True):
    """Ask how all topics are set up, a page at a time; from 4.x all at once.

    Source: GetAllTopicConfigRequestHeader.java, RocketMQ 5.3.4.
    """

    topic_seq: I32 | None = None
    """How many topics to pass over."""
    data_version: str | None = None
    max_topic_num: I32 | None = None


@request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)
class CreateGroup(Header, frozen=True):
    """Create a consumer group, or change one: `bodies.GroupConfig`.

    Source: SubscriptionGroupConfig.java, RocketMQ 5.3.4.
    """


class AllGroupConfigReply(Header, frozen=True):
    """How many groups there are, of which the body has a part; 4.x does not say.

    Source: GetAllSubscriptionGroupResponseHeader.java, RocketMQ 5.3.4.
    """

    total_group_num: I32 | None = None


@request(
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    reply=AllGroupConfigReply,
)
class GetAllGroupConfig(Header, frozen=True):
    """Ask how all groups are set up, a page at a time; from 4.x all at once.

    Source: GetAllSubscriptionGroupRequestHeader.java, RocketMQ 5.3.4.
    """

    group_seq: I32 | None = None
    """How many groups to pass over."""
    data_version: str | None = None
    max_group_num: I32 | None = None


@request(RequestCode.DELETE_SUBSCRIPTIONGROUP)
class DeleteGroup(Header, frozen=True):
    """Delete a consumer group.

    Source: DeleteSubscriptionGroupRequestHeader.java, RocketMQ 5.3.4.
    """

    group_name: str
    clean_offset: bool = False


@request(RequestCode.GET_TOPIC_STATS_INFO)
class GetTopicStats(Header, frozen=True):
    """Ask for the bounds of a topic's queues; answered by a TopicStatsTable.

    Source: GetTopicStatsInfoRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str


@request(RequestCode.GET_CONSUME_STATS)
class GetConsumeStats(Header, frozen=True):
    """Ask how far a group is behind; answered by ConsumeStats.

    Source: GetConsumeStatsRequestHeader.java, RocketMQ 5.5.0.
    """

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None
    """Topics joined by semicolons; empty: all."""


@request(RequestCode.GET_CONSUMER_CONNECTION_LIST)
class GetConsumerConnectionList(Header, frozen=True):
    """Ask who consumes in a group; answered by ConsumerConnection.

    Source: GetConsumerConnectionListRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str


@request(RequestCode.GET_PRODUCER_CONNECTION_LIST)
class GetProducerConnectionList(Header, frozen=True):
    """Ask who produces in a group; answered by ProducerConnection.

    Source: GetProducerConnectionListRequestHeader.java, RocketMQ 5.3.4.
    """

    producer_group: str


@request(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO)
class QueryTopicConsumeByWho(Header, frozen=True):
    """Ask which groups consume a topic; answered by GroupList.

    Source: QueryTopicConsumeByWhoRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
