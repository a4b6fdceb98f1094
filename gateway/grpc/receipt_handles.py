"""Receipt handles: what they say, and what a broker is asked by one.

Source: ReceiptHandle.java and AckMessageActivity.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ropeway.gateway.grpc.answers import header_of, refused
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError
from ropeway.gateway.wire import receipt
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pop import (
    AckMessage,
    ChangeInvisibleTime,
    InvisibleReply,
)
from ropeway.gateway.wire.errors import ReceiptError

if TYPE_CHECKING:
    from ropeway.gateway.grpc.caller import Caller
    from ropeway.gateway.processors.context import Answer

_OFFSET_AT = 7
_LITE_TOPIC_AT = 8
_MAX_I64 = (1 << 63) - 1
_MAX_I32 = (1 << 31) - 1
_ELSEWHERE = {ResponseCode.MESSAGE_ILLEGAL, ResponseCode.INVALID_PARAMETER}
"""The topic has no such queue, or the broker another name."""


class Handle(NamedTuple):
    """A receipt handle, which says where its message is."""

    receipt: receipt.Receipt
    offset: int
    text: str
    lite_topic: str = ""
    """Where it is of one; the handle says so behind all else."""

    def topic(self, group: str, topic: str) -> str:
        """Where the message is: the topic itself, or where it is tried again."""
        return receipt.retry_topic(group, topic, self.receipt.retry)


def handle(text: str) -> Handle:
    """Read a receipt handle.

    Raises:
        RefusedError: It is none.
    """
    try:
        parsed = receipt.parse(text)
        fields = text.split(" ")
        offset = int(fields[_OFFSET_AT])
    except (ReceiptError, ValueError, IndexError) as error:
        raise _forged(text) from error
    if (
        min(*parsed[:3], parsed.queue_id, offset) < 0
        or max(*parsed[:3], offset) > _MAX_I64
        or parsed.queue_id > _MAX_I32
    ):
        raise _forged(text)
    lite_topic = fields[_LITE_TOPIC_AT] if len(fields) > _LITE_TOPIC_AT else ""
    return Handle(parsed, offset, text, lite_topic)


def made(of: receipt.Receipt, offset: int, lite_topic: str = "") -> Handle:
    """The handle of a message that was handed out."""
    text = receipt.dump(of, offset)
    if lite_topic:
        text = f"{text} {lite_topic}"
    return Handle(of, offset, text, lite_topic)


def _forged(text: str) -> RefusedError:
    return RefusedError(
        Code.INVALID_RECEIPT_HANDLE,
        f"receipt handle {text!r:.100}; allowed: what came with a message",
    )


async def ack(caller: Caller, of: Handle, topic: str, group: str) -> None:
    """A message is done.

    Raises:
        RefusedError: It is not in hand by that receipt.
    """
    await _ask(caller, AckMessage(**_named_by(of, topic, group)))


async def keep(
    caller: Caller,
    of: Handle,
    topic: str,
    group: str,
    invisible_ms: int,
    *,
    suspend: bool = False,
) -> Handle:
    """Keep a message for a time from now, and get its new receipt.

    Raises:
        RefusedError: It is not in hand by that receipt.
    """
    header = ChangeInvisibleTime(
        **_named_by(of, topic, group), invisible_time=invisible_ms, suspend=suspend
    )
    reply = header_of(await _ask(caller, header), InvisibleReply)
    # As ChangeInvisibleTimeProcessor's clients put the new one together.
    changed = of.receipt._replace(
        start=of.offset,
        pop_ms=reply.pop_time,
        invisible_ms=reply.invisible_time,
        revive_queue_id=reply.revive_qid,
    )
    return made(changed, of.offset, of.lite_topic)


def _named_by(of: Handle, topic: str, group: str) -> dict[str, Any]:
    """The fields by which requests name the message of a receipt."""
    return {
        "consumer_group": group,
        "topic": of.topic(group, topic),
        "queue_id": of.receipt.queue_id,
        "extra_info": of.text,
        "offset": of.offset,
        "lite_topic": of.lite_topic or None,
        "bname": of.receipt.broker,
    }


async def _ask(caller: Caller, header: AckMessage | ChangeInvisibleTime) -> Answer:
    """Have something done by a receipt, which says where as well."""
    reply = await caller.ask(header)
    if reply.code in _ELSEWHERE:
        raise RefusedError(Code.INVALID_RECEIPT_HANDLE, reply.remark or "")
    if reply.code != ResponseCode.SUCCESS:
        raise refused(reply)
    return reply
