"""Requests that waited too long to be begun: sends are refused, which costs little.

Source: BrokerFastFailure.java, RocketMQ 5.3.4. Producers try another broker, or the
same one again, or tell their caller; what waited on would time out at the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.processors.dispatch import dispatch
from gateway.wire.codes import (
    ONE_WAY_FLAG,
    ROPEWAY_VERSION,
    RequestCode,
    ResponseCode,
)
from gateway.wire.frame import PREFIX

if TYPE_CHECKING:
    from gateway.node.node import Node
    from gateway.processors.context import Peer
    from gateway.wire.frame import Envelope

_SENDS = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
    }
)

# As `encode_frame` would make it. The word in brackets is what people search for.
_BUSY = (
    b'{"code":%d,"flag":1,"language":"JAVA","opaque":%d,'
    b'"remark":"[TIMEOUT_CLEAN_QUEUE]broker busy, the request waited %d ms; '
    b'allowed: %d","serializeTypeCurrentRPC":"JSON","version":%d}'
)


def dispatch_late(
    node: Node, peer: Peer, envelope: Envelope, body: bytes, waited_ms: int
) -> None:
    """Refuse a send, or work on what is not one; see `dispatch`."""
    if envelope.code not in _SENDS:
        dispatch(node, peer, envelope, body)
    elif envelope.flag & ONE_WAY_FLAG:
        peer.respond()
    else:
        header = _BUSY % (
            ResponseCode.SYSTEM_BUSY,
            envelope.opaque,
            waited_ms,
            node.config.limits.send_wait_ms,
            ROPEWAY_VERSION,
        )
        size = len(header)
        peer.respond(PREFIX.pack(size + 4, size) + header)
