"""Requests that wait for too long, or whose client has left meanwhile.

Sends are refused then, which costs less than storing them. What was asked one-way is
done for a client that has left, and nothing else: nobody waits for it.

Source: BrokerFastFailure.java, RocketMQ 5.3.4. A producer tries another broker, or the
same one again, or tells its caller; a send that waited on would time out there.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    ROPEWAY_VERSION,
    RequestCode,
    ResponseCode,
)
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import PREFIX, decode_envelope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.gateway.wire.frame import RawFrame

SENDS = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
    }
)

_LEFT = SENDS | {
    RequestCode.END_TRANSACTION,
    RequestCode.UNLOCK_BATCH_MQ,
    RequestCode.UPDATE_CONSUMER_OFFSET,
}
"""What clients ask one-way, and some of them just before they leave. A heartbeat is
not among it: it would register who is not there any more."""

BUSY = "[TIMEOUT_CLEAN_QUEUE]broker busy, "
"""Before the reason; the word in brackets is what people search for."""

# As `encode_frame` would make it.
_BUSY = (
    f'{{"code":{ResponseCode.SYSTEM_BUSY:d},"flag":1,"language":"JAVA","opaque":%d,'
    f'"remark":"{BUSY}%s",'
    '"serializeTypeCurrentRPC":"JSON",'
    f'"version":{ROPEWAY_VERSION}}}'
).encode()


def refuse_sends(frames: Iterable[RawFrame], why: str) -> tuple[list[RawFrame], bytes]:
    """Part requests into those that have to wait on, and answers to the sends.

    Args:
        frames: The requests.
        why: Sends are refused, in ASCII without quotes; their clients are told it.

    Raises:
        FrameError: A header is not one.
    """
    others = []
    answers = []
    reason = why.encode()
    for frame in frames:
        envelope = decode_envelope(frame[0], frame[1])
        if envelope.code not in SENDS or envelope.flag & RESPONSE_FLAG:
            others.append(frame)
        elif not envelope.flag & ONE_WAY_FLAG:
            header = _BUSY % (envelope.opaque, reason)
            size = len(header)
            answers.append(PREFIX.pack(size + 4, size) + header)
    return others, b"".join(answers)


def left_behind(waiting: Iterable[Iterable[RawFrame]]) -> list[RawFrame]:
    """Find what is still to be done for a client that has left.

    Args:
        waiting: The requests that came from it and are not begun, in their order. What
            follows one that cannot be read is not looked at.
    """
    found = []
    try:
        for frame in chain.from_iterable(waiting):
            envelope = decode_envelope(frame[0], frame[1])
            if envelope.flag & ONE_WAY_FLAG and envelope.code in _LEFT:
                found.append(frame)
    except FrameError:
        pass
    return found
