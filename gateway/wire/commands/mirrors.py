"""Our own request to store messages of another cluster as they are there."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I32, I64
from ropeway.gateway.wire.header import Header, request


class MessagesMirrored(Header, frozen=True):
    """How far a queue is mirrored."""

    next_offset: I64
    """The offset of the message that it lacks next."""


@request(RequestCode.ROPEWAY_MIRROR_MESSAGES, reply=MessagesMirrored)
class MirrorMessages(Header, frozen=True):
    """Store messages in a queue at their own offsets; the body is a pull's.

    Those that are there are passed over. INVALID_PARAMETER says why the others cannot
    be stored: clients may write to the topic, or messages before them are missing.
    """

    topic: str
    queue_id: I32
