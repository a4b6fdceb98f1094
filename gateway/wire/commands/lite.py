"""Headers and bodies of lite topics: many small topics in the queues of one."""

from __future__ import annotations

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request


class PopLiteReply(Header, frozen=True):
    """What was handed out; the messages are the frame's body.

    Source: PopLiteMessageResponseHeader.java, RocketMQ 5.5.0.
    """

    pop_time: I64
    invisible_time: I64
    revive_qid: I32
    order_count_info: str | None = None
    """How often each message came before, joined by semicolons."""
    start_offset_info: str | None = None
    """Stays empty: what was popped has receipts of its own."""
    msg_offset_info: str | None = None
    """Likewise."""


@request(RequestCode.POP_LITE_MESSAGE, reply=PopLiteReply)
class PopLiteMessage(Header, frozen=True):
    """Hand out messages of the lite topics that a client subscribes to.

    Source: PopLiteMessageRequestHeader.java, RocketMQ 5.5.0.
    """

    client_id: str
    consumer_group: str
    topic: str
    """The parent."""
    max_msg_num: I32
    invisible_time: I64
    """Milliseconds."""
    poll_time: I64
    """Milliseconds to wait."""
    born_time: I64
    attempt_id: str | None = None
    bname: str | None = None


@request(RequestCode.LITE_SUBSCRIPTION_CTL)
class LiteSubscriptionCtl(Header, frozen=True):
    """Subscribe clients to lite topics, or end that; the body says which.

    Source: LiteSubscriptionCtlRequestHeader.java, RocketMQ 5.5.0.
    """

    bname: str | None = None


@request(RequestCode.NOTIFY_UNSUBSCRIBE_LITE)
class NotifyUnsubscribeLite(Header, frozen=True):
    """Another client of the group has taken a lite topic.

    Source: NotifyUnsubscribeLiteRequestHeader.java, RocketMQ 5.5.0.
    """

    lite_topic: str
    consumer_group: str
    client_id: str


PARTIAL_ADD = "PARTIAL_ADD"
PARTIAL_REMOVE = "PARTIAL_REMOVE"
COMPLETE_ADD = "COMPLETE_ADD"
COMPLETE_REMOVE = "COMPLETE_REMOVE"


class OffsetOption(Body, frozen=True):
    """Where a subscription begins.

    Source: OffsetOption.java, RocketMQ 5.5.0.
    """

    type: str
    """POLICY, OFFSET, TAIL_N or TIMESTAMP."""
    value: int = 0
    """Of a policy: 0 as it is, 1 the first message, 2 behind the last."""


class LiteSubscription(Body, frozen=True, kw_only=True):
    """What one client wants.

    Source: LiteSubscriptionDTO.java, RocketMQ 5.5.0.
    """

    action: str
    client_id: str = ""
    group: str = ""
    topic: str = ""
    lite_topic_set: list[str] | None = None
    offset_option: OffsetOption | None = None
    version: int = 0


class LiteSubscriptions(Body, frozen=True):
    """The body of `LiteSubscriptionCtl`.

    Source: LiteSubscriptionCtlRequestBody.java, RocketMQ 5.5.0.
    """

    subscription_set: list[LiteSubscription] | None = None
