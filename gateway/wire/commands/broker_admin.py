"""Headers of looking after a broker: its settings, its state, its store."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request


class BrokerConfigReply(Header, frozen=True):
    """Which version of its settings a broker has.

    Source: GetBrokerConfigResponseHeader.java, RocketMQ 5.3.4.
    """

    version: str


@request(RequestCode.UPDATE_BROKER_CONFIG)
class UpdateBrokerConfig(Header, frozen=True):
    """Change settings; the body has lines of `name=value`.

    Source: AdminBrokerProcessor.updateBrokerConfig, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_BROKER_CONFIG, reply=BrokerConfigReply)
class GetBrokerConfig(Header, frozen=True):
    """Ask for all settings; answered by lines of `name=value`.

    Source: AdminBrokerProcessor.getBrokerConfig, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_BROKER_RUNTIME_INFO)
class GetBrokerRuntimeInfo(Header, frozen=True):
    """Ask how a broker does; answered by a KVTable.

    Source: AdminBrokerProcessor.getBrokerRuntimeInfo, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_ALL_DELAY_OFFSET)
class GetAllDelayOffset(Header, frozen=True):
    """Ask how far each delay level has come, as a slave broker does.

    Source: AdminBrokerProcessor.getAllDelayOffset, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
class GetSystemTopicListFromBroker(Header, frozen=True):
    """Ask for the topics that a broker has for itself: `bodies.TopicList`.

    Source: AdminBrokerProcessor.getSystemTopicListFromBroker, RocketMQ 5.3.4.
    """


@request(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
class CleanExpiredConsumeQueue(Header, frozen=True):
    """Remove indexes of messages that are gone.

    Source: AdminBrokerProcessor.cleanExpiredConsumeQueue, RocketMQ 5.3.4.
    """


@request(RequestCode.DELETE_EXPIRED_COMMITLOG)
class DeleteExpiredCommitLog(Header, frozen=True):
    """Remove messages older than the retention time.

    Source: AdminBrokerProcessor.deleteExpiredCommitLog, RocketMQ 5.3.4.
    """


@request(RequestCode.CLEAN_UNUSED_TOPIC)
class CleanUnusedTopic(Header, frozen=True):
    """Remove indexes of topics that no longer exist.

    Source: AdminBrokerProcessor.cleanUnusedTopic, RocketMQ 5.3.4.
    """


@request(RequestCode.VIEW_BROKER_STATS_DATA)
class ViewBrokerStatsData(Header, frozen=True):
    """Ask for one counter by minute, hour and day; answered by BrokerStatsData.

    Source: ViewBrokerStatsDataRequestHeader.java, RocketMQ 5.3.4.
    """

    stats_name: str
    stats_key: str


@request(RequestCode.GET_BROKER_CONSUME_STATS)
class GetBrokerConsumeStats(Header, frozen=True):
    """Ask how far every group is behind; answered by ConsumeStatsList.

    Source: GetConsumeStatsInBrokerHeader.java, RocketMQ 5.3.4.
    """

    is_order: bool
    """Only groups that consume in order."""


@request(RequestCode.QUERY_CONSUME_QUEUE)
class QueryConsumeQueue(Header, frozen=True):
    """Look at index entries of a queue; answered by QueryConsumeQueueResponseBody.

    Source: QueryConsumeQueueRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str | None = None
    queue_id: I32 = 0
    index: I64 = 0
    """The first queue offset."""
    count: I32 = 0
    consumer_group: str | None = None


@request(RequestCode.GET_ALL_PRODUCER_INFO)
class GetAllProducerInfo(Header, frozen=True):
    """Ask for every producer; answered by ProducerTableInfo.

    Source: GetAllProducerInfoRequestHeader.java, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_TIMER_CHECK_POINT)
class GetTimerCheckPoint(Header, frozen=True):
    """Ask how far the timer has come, as a slave broker does.

    Source: AdminBrokerProcessor.getTimerCheckPoint, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_TIMER_METRICS)
class GetTimerMetrics(Header, frozen=True):
    """Ask how many messages of each topic wait for their time.

    Source: AdminBrokerProcessor.getTimerMetrics, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_BROKER_HA_STATUS)
class GetBrokerHaStatus(Header, frozen=True):
    """Ask how far the slaves are behind; answered by HARuntimeInfo.

    Source: AdminBrokerProcessor.getBrokerHaStatus, RocketMQ 5.3.4.
    """
