"""Headers of pulling."""

from __future__ import annotations

import msgspec

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request

COMMIT_OFFSET_FLAG = 0x1
SUSPEND_FLAG = 0x2
SUBSCRIPTION_FLAG = 0x4


class PullReply(Header, frozen=True):
    """What a pull found; the messages are the frame's body.

    Source: PullMessageResponseHeader.java, RocketMQ 5.3.4.
    """

    suggest_which_broker_id: I64
    next_begin_offset: I64
    min_offset: I64
    max_offset: I64
    offset_delta: I64 | None = None
    topic_sys_flag: I32 | None = None
    group_sys_flag: I32 | None = None
    forbidden_type: I32 | None = None


@request(RequestCode.PULL_MESSAGE, reply=PullReply)
class PullMessage(Header, frozen=True):
    """Read messages of one queue, and wait for some where there are none.

    Source: PullMessageRequestHeader.java, RocketMQ 5.5.0.
    """

    consumer_group: str
    topic: str
    queue_id: I32
    queue_offset: I64
    max_msg_nums: I32
    sys_flag: I32
    """Sum of the flags in this file."""
    commit_offset: I64
    suspend_timeout_millis: I64
    sub_version: I64
    subscription: str | None = None
    """A tag expression or SQL, where `SUBSCRIPTION_FLAG` is set."""
    expression_type: str | None = None
    max_msg_bytes: I32 | None = None
    request_source: I32 | None = None
    proxy_forward_client_id: str | None = msgspec.field(
        name="proxyFrowardClientId", default=None
    )
    lite_topic: str | None = None
    bname: str | None = None
    bulk: bool | None = None
    """Ropeway's own: the client takes as much as `pulls.bulk_count` says."""


@request(RequestCode.LITE_PULL_MESSAGE, reply=PullReply)
class LitePullMessage(PullMessage, frozen=True):
    """A pull of a lite pull consumer.

    Source: DefaultLitePullConsumerImpl.java, RocketMQ 5.3.4.
    """
