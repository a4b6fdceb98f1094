"""Headers of what a broker asks its clients, on their own connections.

Two more stand with their families: `transactions.CheckTransactionState` and
`reply.PushReplyMessage`. The last two here come from administrators too, and the
broker hands them on.
"""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.group_admin import GetConsumerStatus, ResetOffset
from ropeway.gateway.wire.frame import I32
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
class NotifyConsumerIdsChanged(Header, frozen=True):
    """Somebody joined or left the group: share the queues anew.

    Source: NotifyConsumerIdsChangedRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str


@request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
class ResetClientOffset(ResetOffset, frozen=True):
    """Go on at the offsets in the body: ResetOffsetBody.

    Source: Broker2Client.resetOffset, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT)
class GetClientStatus(GetConsumerStatus, frozen=True):
    """Say where you are in a topic; answered by GetConsumerStatusBody.

    Source: Broker2Client.getConsumeStatus, RocketMQ 5.3.4.
    """


@request(RequestCode.GET_CONSUMER_RUNNING_INFO)
class GetConsumerRunningInfo(Header, frozen=True):
    """Ask a client how it does; answered by ConsumerRunningInfo.

    Source: GetConsumerRunningInfoRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str
    client_id: str
    jstack_enable: bool = False
    """With the stacks of all its threads."""


@request(RequestCode.CONSUME_MESSAGE_DIRECTLY)
class ConsumeMessageDirectly(Header, frozen=True):
    """Have a client consume one message now; answered by its result.

    Source: ConsumeMessageDirectlyResultRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: I32 | None = None
    group_sys_flag: I32 | None = None
