"""Headers of clients' coming, going and sharing queues."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.header import Header, request


class HeartBeatReply(
    Header,
    frozen=True,
    rename={
        "is_support_heart_beat_v2": "IS_SUPPORT_HEART_BEAT_V2",
        "is_sub_change": "IS_SUB_CHANGE",
    },
):
    """Whether short heartbeats will do, and whether subscriptions are other ones.

    Source: ClientManageProcessor.heartBeat, RocketMQ 5.3.4.
    """

    is_support_heart_beat_v2: bool | None = None
    is_sub_change: bool | None = None


@request(RequestCode.HEART_BEAT, reply=HeartBeatReply)
class HeartBeat(Header, frozen=True):
    """A client lives and has these producers and consumers: `bodies.HeartbeatData`.

    Source: HeartbeatRequestHeader.java, RocketMQ 5.3.4.
    """


@request(RequestCode.UNREGISTER_CLIENT)
class UnregisterClient(
    Header,
    frozen=True,
    rename={
        "client_id": "clientID",
        "producer_group": "producerGroup",
        "consumer_group": "consumerGroup",
    },
):
    """A producer or a consumer of a client stops.

    Source: UnregisterClientRequestHeader.java, RocketMQ 5.3.4.
    """

    client_id: str
    producer_group: str | None = None
    consumer_group: str | None = None


@request(RequestCode.CHECK_CLIENT_CONFIG)
class CheckClientConfig(Header, frozen=True):
    """Is this subscription one that we can filter by: `bodies.CheckClientBody`.

    Source: CheckClientRequestBody.java, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
class GetConsumerListByGroup(Header, frozen=True):
    """Ask which clients consume in a group; answered by `bodies.ConsumerIdList`.

    Source: GetConsumerListByGroupRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str


@request(RequestCode.LOCK_BATCH_MQ)
class LockBatchMq(Header, frozen=True):
    """Take queues for orderly consumption: `bodies.LockBatchBody`.

    Source: LockBatchRequestBody.java, RocketMQ 5.3.4.
    """


@request(RequestCode.UNLOCK_BATCH_MQ)
class UnlockBatchMq(Header, frozen=True):
    """Give queues free again: `bodies.LockBatchBody`.

    Source: UnlockBatchRequestBody.java, RocketMQ 5.3.4.
    """
