"""What is answered to pops, and to receipts that come back, from templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.gateway.processors.context import Answer
from ropeway.gateway.wire import receipt
from ropeway.gateway.wire.codes import ROPEWAY_VERSION, ResponseCode
from ropeway.gateway.wire.commands.pop import InvisibleReply, PopReply
from ropeway.gateway.wire.frame import begin_frame

if TYPE_CHECKING:
    from ropeway.gateway.pop.pop_receive import Taken, Wanted

# Answers as `encode_frame` would make them, with room for what differs.
_REST = (
    b'"serializeTypeCurrentRPC":"JSON","version":'
    + str(ROPEWAY_VERSION).encode()
    + b"}"
)
_END = b'"flag":1,"language":"JAVA","opaque":%d,' + _REST
_FOUND = (
    b'{"code":0,"extFields":{"popTime":"%d","invisibleTime":"%d","reviveQid":"%d",'
    b'"restNum":"%d","startOffsetInfo":"%b","msgOffsetInfo":"%b"%b},'
    b'"flag":1,"language":"JAVA","opaque":%d,"remark":"FOUND",' + _REST
)
_ORDERS = b',"orderCountInfo":"%b"'
_DONE = b'{"code":0,' + _END
_KEPT = (
    b'{"code":0,"extFields":{"popTime":"%d","invisibleTime":"%d","reviveQid":"%d"},'
    + _END
)


def _found_frame(answer: Any, opaque: int) -> bytes:
    reply: PopReply = answer.header
    orders = reply.order_count_info
    header = _FOUND % (
        reply.pop_time,
        reply.invisible_time,
        reply.revive_qid,
        reply.rest_num,
        (reply.start_offset_info or "").encode(),
        (reply.msg_offset_info or "").encode(),
        _ORDERS % orders.encode() if orders else b"",
        opaque,
    )
    return begin_frame(header, sum(map(len, answer.records)))


def _done_frame(_: Answer, opaque: int) -> bytes:
    return begin_frame(_DONE % opaque)


def _kept_frame(answer: Any, opaque: int) -> bytes:
    reply: InvisibleReply = answer.header
    return begin_frame(
        _KEPT % (reply.pop_time, reply.invisible_time, reply.revive_qid, opaque)
    )


DONE = Answer(template=_done_frame)
"""A message is done."""


def kept(pop_ms: int, invisible_ms: int, revive_queue_id: int) -> Answer:
    """A message is kept for longer, by a new receipt."""
    reply = InvisibleReply(pop_ms, invisible_ms, revive_queue_id)
    return Answer(ResponseCode.SUCCESS, None, reply, None, b"", (), _kept_frame)


def found(taken: Taken) -> Answer:
    """The answer with messages."""
    wanted = taken.wanted
    reply = PopReply(
        taken.pop_ms,
        wanted.invisible_ms,
        receipt.IN_ORDER if wanted.in_order else 0,
        taken.rest,
        ";".join(taken.starts),
        ";".join(taken.offsets),
        ";".join(taken.orders) if taken.orders else None,
    )
    code = ResponseCode.SUCCESS
    return Answer(code, "FOUND", reply, None, b"", taken.data, _found_frame)


def empty(code: ResponseCode, wanted: Wanted, pop_ms: int, rest: int) -> Answer:
    """The answer without messages."""
    reply = PopReply(
        pop_time=pop_ms,
        invisible_time=wanted.invisible_ms,
        revive_qid=receipt.IN_ORDER if wanted.in_order else 0,
        rest_num=rest,
        start_offset_info="",
        msg_offset_info="",
    )
    return Answer(code, "NO_MESSAGE_IN_QUEUE", reply)
