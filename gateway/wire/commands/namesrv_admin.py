"""Headers of brokers and administrators at the name server."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request


class RegisterBrokerReply(Header, frozen=True):
    """Where a broker's master is; absent for the master itself.

    Source: RegisterBrokerResponseHeader.java, RocketMQ 5.3.4.
    """

    ha_server_addr: str | None = None
    master_addr: str | None = None


class WipeWritePermReply(Header, frozen=True):
    """How many topics lost the permission.

    Source: WipeWritePermOfBrokerResponseHeader.java, RocketMQ 5.3.4.
    """

    wipe_topic_count: I32


class AddWritePermReply(Header, frozen=True):
    """How many topics got the permission.

    Source: AddWritePermOfBrokerResponseHeader.java, RocketMQ 5.3.4.
    """

    add_topic_count: I32


class DataVersionReply(Header, frozen=True):
    """Whether a broker has to register again; the body is the known DataVersion.

    Source: QueryDataVersionResponseHeader.java, RocketMQ 5.3.4.
    """

    changed: bool


@request(RequestCode.REGISTER_BROKER, reply=RegisterBrokerReply)
class RegisterBroker(Header, frozen=True):
    """A broker is here, with the topics in the body: RegisterBrokerBody.

    Source: RegisterBrokerRequestHeader.java, RocketMQ 5.3.4.
    """

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: I64
    """0 is the master."""
    heartbeat_timeout_millis: I64 | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    """Whether the body is deflated."""
    body_crc32: I32 | None = None


@request(RequestCode.UNREGISTER_BROKER)
class UnregisterBroker(Header, frozen=True):
    """A broker stops.

    Source: UnRegisterBrokerRequestHeader.java, RocketMQ 5.3.4.
    """

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: I64


@request(RequestCode.QUERY_DATA_VERSION, reply=DataVersionReply)
class QueryDataVersion(Header, frozen=True):
    """A broker asks whether its topics, DataVersion in the body, are known.

    Source: QueryDataVersionRequestHeader.java, RocketMQ 5.3.4.
    """

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: I64


@request(RequestCode.REGISTER_TOPIC_IN_NAMESRV)
class RegisterTopic(Header, frozen=True):
    """A broker has a new topic; the body is `bodies.TopicRoute`.

    Source: RegisterTopicRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str


@request(
    RequestCode.WIPE_WRITE_PERM_OF_BROKER,
    reply=WipeWritePermReply,
)
class WipeWritePerm(Header, frozen=True):
    """Let nobody send to a broker any more.

    Source: WipeWritePermOfBrokerRequestHeader.java, RocketMQ 5.3.4.
    """

    broker_name: str


@request(
    RequestCode.ADD_WRITE_PERM_OF_BROKER,
    reply=AddWritePermReply,
)
class AddWritePerm(Header, frozen=True):
    """Let clients send to a broker again.

    Source: AddWritePermOfBrokerRequestHeader.java, RocketMQ 5.3.4.
    """

    broker_name: str


@request(RequestCode.GET_KVLIST_BY_NAMESPACE)
class GetKvList(Header, frozen=True):
    """Ask for all settings of a namespace; answered by a KVTable.

    Source: GetKVListByNamespaceRequestHeader.java, RocketMQ 5.3.4.
    """

    namespace: str


@request(RequestCode.GET_TOPICS_BY_CLUSTER)
class GetTopicsByCluster(Header, frozen=True):
    """Ask for a cluster's topics; answered by `bodies.TopicList`.

    Source: GetTopicsByClusterRequestHeader.java, RocketMQ 5.3.4.
    """

    cluster: str


@request(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
class GetSystemTopicListFromNamesrv(Header, frozen=True):
    """Ask for clusters' and brokers' own topics; answered by `bodies.TopicList`.

    Source: DefaultRequestProcessor.getSystemTopicListFromNs, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_UNIT_TOPIC_LIST)
class GetUnitTopicList(Header, frozen=True):
    """Ask for the topics that are split into units; answered by `bodies.TopicList`.

    Source: DefaultRequestProcessor.getUnitTopicList, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST)
class GetHasUnitSubTopicList(Header, frozen=True):
    """Ask for the topics that a unit subscribes to; answered by `bodies.TopicList`.

    Source: DefaultRequestProcessor.getHasUnitSubTopicList, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST)
class GetHasUnitSubUnunitTopicList(Header, frozen=True):
    """Ask for those of them that are not split themselves: `bodies.TopicList`.

    Source: DefaultRequestProcessor.getHasUnitSubUnUnitTopicList, RocketMQ 5.3.4.
    """


@request(RequestCode.UPDATE_NAMESRV_CONFIG)
class UpdateNamesrvConfig(Header, frozen=True):
    """Change settings; the body has lines of `name=value`.

    Source: DefaultRequestProcessor.updateConfig, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_NAMESRV_CONFIG)
class GetNamesrvConfig(Header, frozen=True):
    """Ask for all settings; answered by lines of `name=value`.

    Source: DefaultRequestProcessor.getConfig, RocketMQ 5.3.4.
    """
