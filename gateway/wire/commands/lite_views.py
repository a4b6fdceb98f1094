"""Headers of what administrators ask of lite topics."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.GET_BROKER_LITE_INFO)
class GetBrokerLiteInfo(Header, frozen=True):
    """Ask for counts of a broker's lite topics; answered by `BrokerLiteInfo`.

    Source: LiteManagerProcessor.getBrokerLiteInfo, RocketMQ 5.5.0.
    """


@request(RequestCode.GET_PARENT_TOPIC_INFO)
class GetParentTopicInfo(Header, frozen=True):
    """Ask for a parent and its groups; answered by `ParentTopicInfo`.

    Source: GetParentTopicInfoRequestHeader.java, RocketMQ 5.5.0.
    """

    topic: str


@request(RequestCode.GET_LITE_TOPIC_INFO)
class GetLiteTopicInfo(Header, frozen=True):
    """Ask for a lite topic and who subscribes; answered by `LiteTopicInfo`.

    Source: GetLiteTopicInfoRequestHeader.java, RocketMQ 5.5.0.
    """

    parent_topic: str = ""
    lite_topic: str = ""


@request(RequestCode.GET_LITE_CLIENT_INFO)
class GetLiteClientInfo(Header, frozen=True):
    """Ask what a client subscribes to; answered by `LiteClientInfo`.

    Source: GetLiteClientInfoRequestHeader.java, RocketMQ 5.5.0.
    """

    parent_topic: str = ""
    group: str = ""
    client_id: str = ""
    max_count: I32 = 1000
    """Name no more lite topics."""


@request(RequestCode.GET_LITE_GROUP_INFO)
class GetLiteGroupInfo(Header, frozen=True):
    """Ask how far behind a group is; answered by `LiteGroupInfo`.

    Source: GetLiteGroupInfoRequestHeader.java, RocketMQ 5.5.0.
    """

    group: str
    lite_topic: str | None = None
    """This one alone; without it, those where the group is behind most."""
    top_k: I32 = 0
    """How many of them."""


@request(RequestCode.TRIGGER_LITE_DISPATCH)
class TriggerLiteDispatch(Header, frozen=True):
    """Have a group's clients look at all that they subscribe to.

    Source: TriggerLiteDispatchRequestHeader.java, RocketMQ 5.5.0.
    """

    group: str
    client_id: str | None = None
    """This client alone."""
