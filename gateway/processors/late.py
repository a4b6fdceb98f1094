"""Refusing sends while requests wait for too long, which costs less than storing them.

Source: BrokerFastFailure.java, RocketMQ 5.3.4. A producer tries another broker, or the
same one again, or tells its caller; a send that waited on would time out there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    ROPEWAY_VERSION,
    RequestCode,
    ResponseCode,
)
from gateway.wire.frame import PREFIX, decode_envelope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway.wire.frame import RawFrame

SENDS = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
    }
)

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
