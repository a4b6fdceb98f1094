"""What waits in the system topic: messages, and the recalls that cancel some.

A message that waits has these properties first, in this order, and then its own:

    TIMER_OUT_MS   when it is due, in milliseconds since 1970
    REAL_TOPIC     where it is for
    REAL_QID       which queue of it

so that nothing has to be searched for. A recall has TIMER_OUT_MS and TIMER_DEL_UNIQKEY.
When it is delivered a message keeps them all and gets two more, as with RocketMQ:

    TIMER_ENQUEUE_MS   when it was stored to wait, the last time
    TIMER_DEQUEUE_MS   when it was delivered

Source: HookUtils.java, RecallMessageProcessor.java and TimerMessageStore.java, 5.5.0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ropeway.gateway.wire import properties, record_rewrite
from ropeway.gateway.wire.compiled import may_be_compiled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.gateway.wire.frame import Buffer

ASKED = frozenset(
    {
        properties.TIMER_DELAY_SEC,
        properties.TIMER_DELAY_MS,
        properties.TIMER_DELIVER_MS,
        properties.START_DELIVER_TIME,
    }
)
"""Properties by which a producer asks for a delivery time."""

RECALL_TAG = "_RECALL_TAG_"

_ASKED_UNITS_MS = (
    (properties.TIMER_DELAY_SEC, 1000),
    (properties.TIMER_DELAY_MS, 1),
)
_ASKED_TIMES = (properties.TIMER_DELIVER_MS, properties.START_DELIVER_TIME)
_MAX_DIGITS = 18
_HEAD_NAMES = (properties.TIMER_OUT_MS, properties.REAL_TOPIC, properties.REAL_QUEUE_ID)
_OURS = (*_HEAD_NAMES, properties.TIMER_ENQUEUE_MS, properties.TIMER_DEQUEUE_MS)

_HEAD = re.compile(
    rb"TIMER_OUT_MS\x01(\d{1,18})\x02"
    rb"REAL_TOPIC\x01([^\x02]*)\x02REAL_QID\x01(\d{1,18})\x02"
).match
_RECALL = re.compile(
    rb"TIMER_OUT_MS\x01(\d{1,18})\x02TIMER_DEL_UNIQKEY\x01([^\x02]*)\x02"
).match
_UNIQUE_KEY = re.compile(rb"\x02UNIQ_KEY\x01([^\x02]*)\x02").search
_ROLLED = re.compile(rb"TIMER_ROLL_TIMES\x01(\d+)\x02").match


class BadTimeError(Exception):
    """A delivery time cannot be used; the text says what came and what is allowed."""


RECALL = -1
"""No queue: the record is a recall."""


def asked_ms(pairs: Mapping[str, str], now_ms: int, max_delay_ms: int) -> int | None:
    """When a producer wants a message delivered; None for at once.

    Args:
        pairs: The message's properties.
        now_ms: The time, in milliseconds since 1970.
        max_delay_ms: The longest that a message may wait.

    Raises:
        BadTimeError: The time is no number, or too far away.
    """
    if properties.TIMER_OUT_MS in pairs:
        # It has waited already, and somebody sends on what he received.
        return None
    due_ms = _due_ms(pairs, now_ms)
    if due_ms is None or due_ms <= now_ms:
        return None
    if due_ms - now_ms > max_delay_ms:
        raise BadTimeError(
            f"timer message illegal, the delay time of {due_ms - now_ms}ms should not "
            f"be bigger than the max delay {max_delay_ms}ms"
        )
    return due_ms


def _due_ms(pairs: Mapping[str, str], now_ms: int) -> int | None:
    for name, unit_ms in _ASKED_UNITS_MS:
        if name in pairs:
            return now_ms + _number(name, pairs[name]) * unit_ms
    for name in _ASKED_TIMES:
        if name in pairs:
            return _number(name, pairs[name])
    return None


def _number(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS:
        return int(text)
    raise BadTimeError(
        f"timer message illegal, {name} is {text!r:.40}; allowed: a whole number"
    )


def message_text(
    due_ms: int, topic: str, queue_id: int, pairs: dict[str, str], text: str
) -> str:
    """The properties of a message that is to wait, in wire form.

    Args:
        due_ms: Until when.
        topic: Where it is for.
        queue_id: Which queue of it.
        pairs: Its own properties.
        text: The same in wire form.
    """
    if not pairs.keys().isdisjoint(_OURS):
        # It was delayed before and is sent on, with what it had got then.
        text = properties.dump(
            {name: value for name, value in pairs.items() if name not in _OURS}
        )
    return (
        f"TIMER_OUT_MS\x01{due_ms}\x02REAL_TOPIC\x01{topic}\x02"
        f"REAL_QID\x01{queue_id}\x02{text}"
    )


def pairs_until(
    due_ms: int, topic: str, queue_id: int, pairs: Mapping[str, str]
) -> dict[str, str]:
    """The same as pairs."""
    head = dict(zip(_HEAD_NAMES, (str(due_ms), topic, str(queue_id)), strict=True))
    return head | {name: pairs[name] for name in pairs if name not in _OURS}


def recall_text(due_ms: int, topic: str, unique_key: str) -> str:
    """The properties of a recall, in wire form."""
    return (
        f"TIMER_OUT_MS\x01{due_ms}\x02TIMER_DEL_UNIQKEY\x01{topic}+{unique_key}\x02"
        f"UNIQ_KEY\x01{unique_key}\x02TAGS\x01{RECALL_TAG}\x02"
    )


def put_off(text: bytes, topic: str, queue_id: int, due_ms: int) -> bytes:
    """The properties of a message that is to wait on; how often it has to is counted.

    Args:
        text: Those that it has, in wire form.
        topic: Where it is for.
        queue_id: Which queue of it.
        due_ms: Until when.
    """
    head = _HEAD(text)
    if head is None:
        pairs = properties.parse(text.decode())
        return message_text(due_ms, topic, queue_id, pairs, text.decode()).encode()
    rest = text[head.end() :]
    times = 1
    if rolled := _ROLLED(rest):
        times += int(rolled[1])
        rest = rest[rolled.end() :]
    return b"TIMER_OUT_MS\x01%d\x02%bTIMER_ROLL_TIMES\x01%d\x02%b" % (
        due_ms,
        text[head.end(1) + 1 : head.end()],
        times,
        rest,
    )


@may_be_compiled
def waiting_in(
    data: Buffer, /
) -> tuple[list[tuple[int, int, int, int, int, bytes]], int]:
    """What waits and what is recalled among records in a row; others are left out.

    Returns:
        For each its offset, store time, size in bytes, due time (of a recall: that of
        the message that it cancels), the queue id that it is for (`RECALL` for a
        recall), and `topic+unique key`; and where the last record begins.
    """
    found = []
    last = 0
    for parts in record_rewrite.all_parts(data):
        if said := _said(data, parts.properties_at, parts.end):
            size = parts.end - parts.at
            found.append((parts.queue_offset, parts.store_ms, size, *said))
        last = parts.at
    return found, last


def _said(data: Buffer, at: int, end: int) -> tuple[int, int, bytes] | None:
    if head := _HEAD(data, at, end):
        due, topic, queue_id = head.groups()
        unique = _UNIQUE_KEY(data, head.end() - 1, end)
        identity = b"%b+%b" % (topic, unique[1] if unique else b"")
        return int(due), int(queue_id), identity
    if recall := _RECALL(data, at, end):
        return int(recall[1]), RECALL, recall[2]
    return None
