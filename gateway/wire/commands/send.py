"""Headers of producing, and of a consumer's sending back."""

from __future__ import annotations

from typing import cast

import msgspec

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request


class SendReply(Header, frozen=True):
    """Where a message went.

    Source: SendMessageResponseHeader.java, RocketMQ 5.3.4.
    """

    msg_id: str
    """The offsetMsgId; of a batch all of them, joined by commas."""
    queue_id: I32
    queue_offset: I64
    transaction_id: str | None = None
    """The message's unique key."""
    recall_handle: str | None = None
    batch_uniq_id: str | None = None
    msg_region: str | None = msgspec.field(name="MSG_REGION", default=None)
    trace_on: bool | None = msgspec.field(name="TRACE_ON", default=None)
    """Whether clients are to record traces of the message."""


@request(RequestCode.SEND_MESSAGE, reply=SendReply)
class SendMessage(Header, frozen=True):
    """Store one message, the frame's body.

    Source: SendMessageRequestHeader.java, RocketMQ 5.3.4.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: I32
    queue_id: I32
    """Below 0: any queue."""
    sys_flag: I32
    born_timestamp: I64
    flag: I32
    properties: str = ""
    reconsume_times: I32 | None = None
    unit_mode: bool = False
    batch: bool = False
    max_reconsume_times: I32 | None = None
    bname: str | None = None


_ONE_LETTER_NAMES = {
    "producer_group": "a",
    "topic": "b",
    "default_topic": "c",
    "default_topic_queue_nums": "d",
    "queue_id": "e",
    "sys_flag": "f",
    "born_timestamp": "g",
    "flag": "h",
    "properties": "i",
    "reconsume_times": "j",
    "unit_mode": "k",
    "max_reconsume_times": "l",
    "batch": "m",
    "bname": "n",
}


def abbreviated(name: str, doc: str) -> type[SendMessage]:
    """Make a `SendMessage` with one-letter names on the wire."""
    # Renaming does not reach inherited fields, so the subclass states them again.
    fields = [
        (field.name, field.type, field.default)
        if field.default is not msgspec.NODEFAULT
        else (field.name, field.type)
        for field in msgspec.structs.fields(SendMessage)
    ]
    made = msgspec.defstruct(
        name,
        fields,
        bases=(SendMessage,),
        namespace={"__doc__": doc},
        module=__name__,
        rename=_ONE_LETTER_NAMES,
        frozen=True,
        gc=False,
    )
    return cast("type[SendMessage]", made)


SendMessageV2 = request(RequestCode.SEND_MESSAGE_V2, reply=SendReply)(
    abbreviated(
        "SendMessageV2",
        """`SendMessage` with one-letter names, which parse faster in Java.

    Source: SendMessageRequestHeaderV2.java, RocketMQ 5.3.4.
    """,
    )
)

SendBatchMessage = request(RequestCode.SEND_BATCH_MESSAGE, reply=SendReply)(
    abbreviated(
        "SendBatchMessage",
        """Store several messages of one queue, all or none: `gateway/wire/batch.py`.

    Source: SendMessageRequestHeader.parseRequestHeader, RocketMQ 5.3.4.
    """,
    )
)


@request(RequestCode.CONSUMER_SEND_MSG_BACK)
class ConsumerSendMsgBack(Header, frozen=True):
    """A consumer could not handle a message: deliver it again later.

    Source: ConsumerSendMsgBackRequestHeader.java, RocketMQ 5.3.4.
    """

    offset: I64
    """The message id."""
    group: str
    delay_level: I32
    """Below 0: to the dead letters at once; 0: the broker chooses."""
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: I32 | None = None


class RecallReply(Header, frozen=True):
    """Which message was recalled.

    Source: RecallMessageResponseHeader.java, RocketMQ 5.3.4.
    """

    msg_id: str
    """The message's unique key."""


@request(RequestCode.RECALL_MESSAGE, reply=RecallReply)
class RecallMessage(Header, frozen=True):
    """Take back a message whose time of delivery has not come.

    Source: RecallMessageRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
    recall_handle: str
    """What the answer to its sending had."""
    producer_group: str | None = None
    bname: str | None = None
