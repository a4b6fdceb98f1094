"""Headers of popping: the broker hands messages out one by one and takes acks."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request

FROM_EARLIEST = 0
"""`init_mode`: a new group begins at the oldest message."""
FROM_LATEST = 1
"""`init_mode`: a new group begins at the newest message."""


class PopReply(Header, frozen=True):
    """What was handed out; the messages are the frame's body.

    Source: PopMessageResponseHeader.java, RocketMQ 5.3.4.
    """

    pop_time: I64
    invisible_time: I64
    """Milliseconds for which nobody else gets the messages."""
    revive_qid: I32
    rest_num: I64
    """About how many more are there."""
    start_offset_info: str | None = None
    """`retry queueId offset`, a queue each, joined by semicolons."""
    msg_offset_info: str | None = None
    """`retry queueId offset,offset`, a queue each, joined by semicolons."""
    order_count_info: str | None = None


class InvisibleReply(Header, frozen=True):
    """The receipt's new parts after its time was changed.

    Source: ChangeInvisibleTimeResponseHeader.java, RocketMQ 5.3.4.
    """

    pop_time: I64
    invisible_time: I64
    revive_qid: I32


class NotificationReply(Header, frozen=True):
    """Whether a pop would find something.

    Source: NotificationResponseHeader.java, RocketMQ 5.3.4.
    """

    has_msg: bool
    polling_full: bool = False


class PollingInfoReply(Header, frozen=True):
    """How many pops wait.

    Source: PollingInfoResponseHeader.java, RocketMQ 5.3.4.
    """

    polling_num: I32


@request(RequestCode.POP_MESSAGE, reply=PopReply)
class PopMessage(Header, frozen=True):
    """Hand messages out, invisible to others for a time, and wait for some.

    Source: PopMessageRequestHeader.java, RocketMQ 5.5.0.
    """

    consumer_group: str
    topic: str
    queue_id: I32
    """Below 0: any queue."""
    max_msg_nums: I32
    invisible_time: I64
    """Milliseconds."""
    poll_time: I64
    """Milliseconds to wait."""
    born_time: I64
    """When the client asked, in milliseconds since 1970."""
    init_mode: I32
    """`FROM_LATEST` or `FROM_EARLIEST`."""
    exp_type: str | None = None
    exp: str | None = None
    order: bool = False
    attempt_id: str | None = None
    """Says that it is the same pop in order again, whose answer was lost."""
    bname: str | None = None


@request(RequestCode.ACK_MESSAGE)
class AckMessage(Header, frozen=True):
    """A message that was handed out is done.

    Source: AckMessageRequestHeader.java, RocketMQ 5.5.0.
    """

    consumer_group: str
    topic: str
    queue_id: I32
    extra_info: str
    """The receipt that came with the message."""
    offset: I64
    lite_topic: str | None = None
    bname: str | None = None


@request(RequestCode.BATCH_ACK_MESSAGE)
class BatchAckMessage(Header, frozen=True):
    """Messages that were handed out are done; the body says which.

    Source: BatchAckMessageRequestBody.java, RocketMQ 5.3.4.
    """


@request(RequestCode.PEEK_MESSAGE, reply=PopReply)
class PeekMessage(Header, frozen=True):
    """Look at the next messages without taking them.

    Source: PeekMessageRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str
    topic: str
    queue_id: I32
    max_msg_nums: I32
    bname: str | None = None


@request(
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
    reply=InvisibleReply,
)
class ChangeInvisibleTime(Header, frozen=True):
    """Keep a message that was handed out for longer, or give it back sooner.

    Source: ChangeInvisibleTimeRequestHeader.java, RocketMQ 5.5.0.
    """

    consumer_group: str
    topic: str
    queue_id: I32
    extra_info: str
    offset: I64
    invisible_time: I64
    lite_topic: str | None = None
    suspend: bool = False
    bname: str | None = None


@request(RequestCode.NOTIFICATION, reply=NotificationReply)
class Notification(Header, frozen=True):
    """Wait until a pop would find something.

    Source: NotificationRequestHeader.java, RocketMQ 5.5.0.
    """

    consumer_group: str
    topic: str
    queue_id: I32
    poll_time: I64
    born_time: I64
    order: bool = False
    attempt_id: str | None = None
    exp_type: str | None = None
    exp: str | None = None
    bname: str | None = None


@request(RequestCode.POLLING_INFO, reply=PollingInfoReply)
class PollingInfo(Header, frozen=True):
    """Ask how many pops of a group wait at a queue.

    Source: PollingInfoRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str
    topic: str
    queue_id: I32
    bname: str | None = None


@request(RequestCode.QUERY_ASSIGNMENT)
class QueryAssignment(Header, frozen=True):
    """Ask which queues a client is to consume; the body names client and topic.

    Source: QueryAssignmentRequestBody.java, RocketMQ 5.3.4.
    """


@request(RequestCode.POP_ROLLBACK)
class PopRollback(Header, frozen=True):
    """Turn all messages in flight into retries that come when their time is over.

    Source: AdminBrokerProcessor.transferPopToFsStore, RocketMQ 5.3.4.
    """


@request(RequestCode.SET_MESSAGE_REQUEST_MODE)
class SetMessageRequestMode(Header, frozen=True):
    """Say whether a group pulls or pops a topic; the body says which.

    Source: SetMessageRequestModeRequestBody.java, RocketMQ 5.3.4.
    """
