"""PullMessage and the offsets of a group: consumers that keep their own place.

RocketMQ's proxy 5.5.0 leaves these unimplemented, and no client of its asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.grpc import validation
from ropeway.gateway.grpc.answers import header_of, messages_of, refused
from ropeway.gateway.grpc.message_decoder import timestamp_ms
from ropeway.gateway.grpc.message_encoder import message_of
from ropeway.gateway.grpc.methods import rpc
from ropeway.gateway.grpc.protocol import (
    Code,
    FilterType,
    GetOffsetResponse,
    PullMessageResponse,
    QueryOffsetPolicy,
    QueryOffsetResponse,
    UpdateOffsetResponse,
)
from ropeway.gateway.grpc.settings import LONG_POLL_MS, RECEIVE_BATCH
from ropeway.gateway.grpc.statuses import OK, RefusedError, status
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.offsets import (
    GetMaxOffset,
    GetMinOffset,
    Offset,
    QueryConsumerOffset,
    SearchOffset,
    UpdateConsumerOffset,
)
from ropeway.gateway.wire.commands.pull import (
    SUBSCRIPTION_FLAG,
    SUSPEND_FLAG,
    PullMessage,
    PullReply,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.gateway.grpc.calls import Call
    from ropeway.gateway.grpc.protocol import (
        GetOffsetRequest,
        MessageQueue,
        PullMessageRequest,
        QueryOffsetRequest,
        UpdateOffsetRequest,
    )

_NOTHING = {ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY}


def _place(queue: MessageQueue) -> tuple[str, int, str | None]:
    """Topic, queue id and broker."""
    return validation.topic(queue.topic), queue.id, queue.broker.name or None


@rpc("PullMessage")
async def pull_message(
    request: PullMessageRequest, call: Call
) -> AsyncIterator[PullMessageResponse]:
    """Read messages of one queue, and wait for some where there are none."""
    topic, queue_id, broker = _place(request.message_queue)
    poll_ms = validation.duration_ms(request.long_polling_timeout)
    if (left_ms := call.remaining_ms) is not None:
        poll_ms = min(poll_ms, left_ms - 500)
    header = PullMessage(
        consumer_group=validation.group(request.group),
        topic=topic,
        queue_id=queue_id,
        queue_offset=request.offset,
        max_msg_nums=min(request.batch_size, RECEIVE_BATCH) or RECEIVE_BATCH,
        sys_flag=SUBSCRIPTION_FLAG | (SUSPEND_FLAG if poll_ms > 0 else 0),
        commit_offset=0,
        suspend_timeout_millis=max(0, min(poll_ms, LONG_POLL_MS)),
        sub_version=0,
        subscription=request.filter_expression.expression or bodies.SUB_ALL,
        expression_type=bodies.SQL92
        if request.filter_expression.type == FilterType.SQL
        else bodies.TAG,
        bname=broker,
    )
    try:
        reply = await call.ask(header)
    finally:
        call.closed = True
        call.node.pull_hold.forget(call)
    if reply.code == ResponseCode.SUCCESS:
        yield PullMessageResponse(status=OK)
        for stored in messages_of(reply):
            yield PullMessageResponse(message=message_of(stored))
    elif reply.code in _NOTHING:
        yield PullMessageResponse(
            status=status(Code.MESSAGE_NOT_FOUND, "no new message")
        )
    elif reply.code == ResponseCode.PULL_OFFSET_MOVED:
        yield PullMessageResponse(
            status=status(Code.ILLEGAL_OFFSET, reply.remark or "")
        )
    else:
        raise refused(reply)
    yield PullMessageResponse(next_offset=header_of(reply, PullReply).next_begin_offset)


@rpc("UpdateOffset")
async def update_offset(
    request: UpdateOffsetRequest, call: Call
) -> UpdateOffsetResponse:
    """Say where a group goes on in a queue."""
    topic, queue_id, broker = _place(request.message_queue)
    if request.offset < 0:
        raise RefusedError(
            Code.ILLEGAL_OFFSET, f"offset {request.offset}; allowed: 0 and more"
        )
    await call.do(
        UpdateConsumerOffset(
            consumer_group=validation.group(request.group),
            topic=topic,
            queue_id=queue_id,
            commit_offset=request.offset,
            bname=broker,
        )
    )
    return UpdateOffsetResponse(status=OK)


@rpc("GetOffset")
async def get_offset(request: GetOffsetRequest, call: Call) -> GetOffsetResponse:
    """Where a group goes on in a queue."""
    topic, queue_id, broker = _place(request.message_queue)
    reply = await call.get(
        QueryConsumerOffset(
            consumer_group=validation.group(request.group),
            topic=topic,
            queue_id=queue_id,
            set_zero_if_not_found=False,
            bname=broker,
        ),
        Offset,
    )
    return GetOffsetResponse(status=OK, offset=reply.offset)


@rpc("QueryOffset")
async def query_offset(request: QueryOffsetRequest, call: Call) -> QueryOffsetResponse:
    """The offset of a queue's beginning, of its end, or of a time."""
    topic, queue_id, broker = _place(request.message_queue)
    header: GetMinOffset | GetMaxOffset | SearchOffset
    if request.query_offset_policy == QueryOffsetPolicy.BEGINNING:
        header = GetMinOffset(topic=topic, queue_id=queue_id, bname=broker)
    elif request.query_offset_policy == QueryOffsetPolicy.END:
        header = GetMaxOffset(topic=topic, queue_id=queue_id, bname=broker)
    elif request.HasField("timestamp"):
        header = SearchOffset(
            topic=topic,
            queue_id=queue_id,
            timestamp=timestamp_ms(request.timestamp),
            bname=broker,
        )
    else:
        raise RefusedError(Code.BAD_REQUEST, "an offset by time without a timestamp")
    reply = await call.get(header, Offset)
    return QueryOffsetResponse(status=OK, offset=reply.offset)
