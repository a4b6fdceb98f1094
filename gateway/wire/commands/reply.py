"""Headers of request and reply: a consumer answers the producer of a message."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.send import SendMessage, SendReply, abbreviated
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.SEND_REPLY_MESSAGE, reply=SendReply)
class SendReplyMessage(SendMessage, frozen=True):
    """A consumer's reply; its properties name the client that waits for it.

    Source: ReplyMessageProcessor.parseRequestHeader, RocketMQ 5.3.4.
    """


SendReplyMessageV2 = request(RequestCode.SEND_REPLY_MESSAGE_V2, reply=SendReply)(
    abbreviated(
        "SendReplyMessageV2",
        """`SendReplyMessage` with one-letter names.

    Source: ReplyMessageProcessor.parseRequestHeader, RocketMQ 5.3.4.
    """,
    )
)


@request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)
class PushReplyMessage(Header, frozen=True):
    """The broker gives a reply, the body, to the client that waits for it.

    Source: ReplyMessageRequestHeader.java, RocketMQ 5.3.4.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: I32
    queue_id: I32
    sys_flag: I32
    born_timestamp: I64
    flag: I32
    born_host: str
    """Address and port, as `/192.0.2.1:4711`."""
    store_host: str
    store_timestamp: I64
    properties: str = ""
    reconsume_times: I32 | None = None
    unit_mode: bool = False
