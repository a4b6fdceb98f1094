"""Headers of offsets: consumers' progress, and queues' bounds."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request


class Offset(Header, frozen=True):
    """One offset of a queue.

    Source: GetMaxOffsetResponseHeader.java, RocketMQ 5.3.4, and its likes.
    """

    offset: I64


class StoreTime(Header, frozen=True):
    """A store time in milliseconds since 1970; -1 where there is none.

    Source: GetEarliestMsgStoretimeResponseHeader.java, RocketMQ 5.3.4.
    """

    timestamp: I64


@request(RequestCode.QUERY_CONSUMER_OFFSET, reply=Offset)
class QueryConsumerOffset(Header, frozen=True):
    """Ask where a group goes on in a queue.

    Source: QueryConsumerOffsetRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str
    topic: str
    queue_id: I32
    set_zero_if_not_found: bool = True
    bname: str | None = None


@request(RequestCode.UPDATE_CONSUMER_OFFSET)
class UpdateConsumerOffset(Header, frozen=True):
    """Say where a group goes on in a queue.

    Source: UpdateConsumerOffsetRequestHeader.java, RocketMQ 5.3.4.
    """

    consumer_group: str
    topic: str
    queue_id: I32
    commit_offset: I64
    bname: str | None = None


@request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, reply=Offset)
class SearchOffset(Header, frozen=True):
    """Ask which message of a queue was stored at a time.

    Source: SearchOffsetRequestHeader.java, RocketMQ 5.5.0.
    """

    topic: str
    queue_id: I32
    timestamp: I64
    """Milliseconds since 1970."""
    boundary_type: str = "LOWER"
    """LOWER: the first at or after the time; UPPER: the last at or before it."""
    lite_topic: str | None = None
    bname: str | None = None


@request(RequestCode.GET_MAX_OFFSET, reply=Offset)
class GetMaxOffset(Header, frozen=True):
    """Ask for the offset that the next message of a queue will get.

    Source: GetMaxOffsetRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
    queue_id: I32
    committed: bool = True
    """Count only messages a consumer can already see."""
    bname: str | None = None


@request(RequestCode.GET_MIN_OFFSET, reply=Offset)
class GetMinOffset(Header, frozen=True):
    """Ask for the offset of the oldest message of a queue.

    Source: GetMinOffsetRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
    queue_id: I32
    bname: str | None = None


@request(RequestCode.GET_EARLIEST_MSG_STORETIME, reply=StoreTime)
class GetEarliestMsgStoreTime(Header, frozen=True):
    """Ask when the oldest message of a queue was stored.

    Source: GetEarliestMsgStoretimeRequestHeader.java, RocketMQ 5.3.4.
    """

    topic: str
    queue_id: I32
    bname: str | None = None
