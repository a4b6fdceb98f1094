"""What is answered to pops, and to receipts that come back, from templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.processors.context import Answer
from ropeway.gateway.wire.codes import ROPEWAY_VERSION, ResponseCode
from ropeway.gateway.wire.commands.pop import InvisibleReply, PopReply
from ropeway.gateway.wire.frame import begin_frame

if TYPE_CHECKING:
    from ropeway.gateway.pop.pop_receive import Taken
    from ropeway.gateway.wire.frame import Buffer

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


class _Found(Answer, frozen=True):
    """Messages for a pop; its header is a `PopReply`."""

    def frame(self, opaque: int) -> tuple[Buffer, ...]:
        """Make the frame from a template."""
        reply = self.header
        assert isinstance(reply, PopReply), "found() makes it"
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
        return begin_frame(header, sum(map(len, self.records))), *self.records


class _Done(Answer, frozen=True):
    """Nothing but success."""

    def frame(self, opaque: int) -> tuple[Buffer, ...]:
        """Make the frame from a template."""
        return (begin_frame(_DONE % opaque),)


class _Kept(Answer, frozen=True):
    """A message is kept for longer; its header is an `InvisibleReply`."""

    def frame(self, opaque: int) -> tuple[Buffer, ...]:
        """Make the frame from a template."""
        reply = self.header
        assert isinstance(reply, InvisibleReply), "kept() makes it"
        times = reply.pop_time, reply.invisible_time
        return (begin_frame(_KEPT % (*times, reply.revive_qid, opaque)),)


DONE = _Done()
"""A message is done."""


def kept(pop_ms: int, invisible_ms: int, revive_queue_id: int) -> Answer:
    """A message is kept for longer, by a new receipt."""
    return _Kept(header=InvisibleReply(pop_ms, invisible_ms, revive_queue_id))


def found(taken: Taken, revive_queue_id: int) -> Answer:
    """The answer with messages."""
    reply = PopReply(
        taken.pop_ms,
        taken.wanted.invisible_ms,
        revive_queue_id,
        taken.rest,
        ";".join(taken.starts),
        ";".join(taken.offsets),
        ";".join(taken.orders) if taken.orders else None,
    )
    return _Found(ResponseCode.SUCCESS, "FOUND", reply, records=taken.data)


def empty(
    code: ResponseCode, invisible_ms: int, revive_queue_id: int, pop_ms: int, rest: int
) -> Answer:
    """The answer without messages."""
    reply = PopReply(
        pop_time=pop_ms,
        invisible_time=invisible_ms,
        revive_qid=revive_queue_id,
        rest_num=rest,
        start_offset_info="",
        msg_offset_info="",
    )
    return Answer(code, "NO_MESSAGE_IN_QUEUE", reply)
