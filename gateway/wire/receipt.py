"""Receipts: what a client shows to acknowledge a message that it popped.

    start popTime invisibleTime reviveQueueId retry broker queueId offset

joined by spaces. *start* is where the pop began to read the queue, *retry* tells the
topic: 0 as asked for, 1 and 2 the group's retry topic with `_` or `+` in its name. The
revive queue id is 999 for messages that were popped in order. A client puts receipts
together from what a pop's answer says for each queue, joined by semicolons:

    startOffsetInfo   retry queueId start
    msgOffsetInfo     retry queueId offset,offset
    orderCountInfo    retry queueId times     and     retry qo<queueId>%<offset> times

Source: ExtraInfoUtil.java, KeyBuilder.java and BatchAck.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ropeway.gateway.wire.errors import ReceiptError
from ropeway.gateway.wire.properties import REMEMBERED_CHARACTERS

IN_ORDER = 999
"""The revive queue id of what was popped in order."""

NORMAL, RETRY_V1, RETRY_V2 = 0, 1, 2
_RETRY_PREFIX = "%RETRY%"
_LEAST_FIELDS = 7
_MAX_SHOWN = 200
_LONGEST = 1 << 16
"""Bytes of an acknowledged set. A filter can leave gaps between messages of one pop."""
MOST_MESSAGES = 32
"""Messages of one pop. Source: PopMessageProcessor.java, RocketMQ 5.3.4."""


class Receipt(NamedTuple):
    """What a receipt says of a message."""

    start: int
    pop_ms: int
    invisible_ms: int
    revive_queue_id: int
    retry: int
    broker: str
    queue_id: int


def parse(text: str) -> Receipt:
    """Read a receipt; the offset at its end comes in a field of its own, too.

    Raises:
        ReceiptError: It is none.
    """
    fields = text.split(" ")
    if len(fields) < _LEAST_FIELDS:
        raise ReceiptError(_complaint(text))
    try:
        receipt = Receipt(
            int(fields[0]),
            int(fields[1]),
            int(fields[2]),
            int(fields[3]),
            int(fields[4]),
            fields[5],
            int(fields[6]),
        )
    except ValueError as error:
        raise ReceiptError(_complaint(text)) from error
    if not NORMAL <= receipt.retry <= RETRY_V2:
        raise ReceiptError(_complaint(text))
    return receipt


def _complaint(text: str) -> str:
    return (
        f"receipt {text[:_MAX_SHOWN]!r}; allowed: start popTime invisibleTime "
        "reviveQueueId retry broker queueId offset"
    )


def dump(receipt: Receipt, offset: int) -> str:
    """Write the receipt of the message at an offset."""
    return " ".join((*map(str, receipt), str(offset)))


def retry_topic(group: str, topic: str, retry: int) -> str:
    """The topic that a receipt means: one asked for, or a retry topic of it."""
    if retry == NORMAL:
        return topic
    is_short = len(group) + len(topic) <= REMEMBERED_CHARACTERS
    return (_retry_topic if is_short else _retry_topic.__wrapped__)(group, topic, retry)


@lru_cache(maxsize=65536)
def _retry_topic(group: str, topic: str, retry: int) -> str:
    separator = "_" if retry == RETRY_V1 else "+"
    return f"{_RETRY_PREFIX}{group}{separator}{topic}"


def kind_of(topic: str) -> int:
    """How receipts and infos call a topic: NORMAL, RETRY_V1 or RETRY_V2."""
    if not topic.startswith(_RETRY_PREFIX):
        return NORMAL
    return RETRY_V2 if "+" in topic else RETRY_V1


def order_info(retry: int, queue_id: int, counts: dict[int, int], least: int) -> str:
    """A queue's part of orderCountInfo.

    Args:
        retry: As `kind_of` says.
        queue_id: The queue.
        counts: How often messages came before, by their offsets; those that did.
        least: The lowest of all counts, for clients that look by queue.
    """
    parts = [
        f"{retry} qo{queue_id}%{offset} {count}" for offset, count in counts.items()
    ]
    parts.append(f"{retry} {queue_id} {least}")
    return ";".join(parts)


class BatchAck(msgspec.Struct, frozen=True):
    """Messages of one queue and one pop that are done."""

    group: str = msgspec.field(name="c")
    topic: str = msgspec.field(name="t")
    retry: str = msgspec.field(name="r")
    start: int = msgspec.field(name="so")
    queue_id: int = msgspec.field(name="q")
    revive_queue_id: int = msgspec.field(name="rq")
    pop_ms: int = msgspec.field(name="pt")
    invisible_ms: int = msgspec.field(name="it")
    bits: str = msgspec.field(name="b")
    """Which, counted from the start: a Java BitSet's bytes in base 64."""

    def offsets(self) -> list[int]:
        """The offsets of the messages.

        Raises:
            ReceiptError: The set cannot be read, or has more than a pop gives.
        """
        try:
            data = base64.b64decode(self.bits, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ReceiptError(
                f"set of acknowledged messages {self.bits[:_MAX_SHOWN]!r}; "
                "allowed: base 64"
            ) from error
        if len(data) > _LONGEST:
            raise ReceiptError(
                f"set of acknowledged messages of {len(data)} bytes; "
                f"allowed: {_LONGEST}"
            )
        mask = int.from_bytes(data, "little")
        if mask.bit_count() > MOST_MESSAGES:
            raise ReceiptError(
                f"set of {mask.bit_count()} acknowledged messages; "
                f"allowed: {MOST_MESSAGES}"
            )
        found = []
        while mask:
            low = mask & -mask
            found.append(self.start + low.bit_length() - 1)
            mask ^= low
        return found


class BatchAcks(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a batch of acknowledgements."""

    acks: list[BatchAck] = []
    broker_name: str | None = None
