"""Headers of the name server."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.GET_ROUTEINFO_BY_TOPIC)
class GetRouteInfo(Header, frozen=True):
    """Ask which brokers have a topic's queues; answered by `bodies.TopicRoute`.

    Source: GetRouteInfoRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
    accept_standard_json_only: bool | None = None
    own_only: bool | None = None
    """Ours, unknown to others: in a migration, what this cluster has, and nothing of
    the source."""


@request(RequestCode.GET_BROKER_CLUSTER_INFO)
class GetBrokerClusterInfo(Header, frozen=True):
    """Ask for every broker and cluster; answered by `bodies.ClusterInfo`.

    Source: DefaultRequestProcessor.getBrokerClusterInfo, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
class GetAllTopicList(Header, frozen=True):
    """Ask for the names of all topics; answered by `bodies.TopicList`.

    Source: DefaultRequestProcessor.getAllTopicListFromNameserver, RocketMQ 5.3.4.
    """


@request(RequestCode.DELETE_TOPIC_IN_NAMESRV)
class DeleteTopicInNamesrv(Header, frozen=True):
    """Forget a topic's route.

    Source: DeleteTopicFromNamesrvRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
    cluster_name: str | None = None


class KvValue(Header, frozen=True):
    """A setting's value; absent where it was never set.

    Source: GetKVConfigResponseHeader.java, RocketMQ 5.3.4.
    """

    value: str | None = None


@request(RequestCode.PUT_KV_CONFIG)
class PutKvConfig(Header, frozen=True):
    """Set a setting.

    Source: PutKVConfigRequestHeader.java, RocketMQ 5.3.4.
    """

    namespace: str
    key: str
    value: str


@request(RequestCode.GET_KV_CONFIG, reply=KvValue)
class GetKvConfig(Header, frozen=True):
    """Ask for a setting.

    Source: GetKVConfigRequestHeader.java, RocketMQ 5.3.4.
    """

    namespace: str
    key: str


@request(RequestCode.DELETE_KV_CONFIG)
class DeleteKvConfig(Header, frozen=True):
    """Remove a setting.

    Source: DeleteKVConfigRequestHeader.java, RocketMQ 5.3.4.
    """

    namespace: str
    key: str
