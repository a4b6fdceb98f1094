"""The short way of plain messages with one delivery time; `timed` has the long one."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from gateway.node.node import now_ms
from gateway.processors.stored import stored
from gateway.wire import recall
from gateway.wire.plain import plain_record
from gateway.wire.properties import VALUE_END

if TYPE_CHECKING:
    from gateway.node.served_topic import ServedTopic
    from gateway.processors.context import Context
    from storage.api import LogError

_START = "TIMER_DEL"
_ASKED = re.compile(r"TIMER_DEL(?:AY_SEC|AY_MS|IVER_MS)\x01(\d{1,15})\x02").match
_UNITS_MS = {"S": 1000, "M": 1}
"""By the letter behind TIMER_DELAY_."""
_UNIT_AT = len("TIMER_DELAY_")


def store_plain_timed(
    context: Context,
    topic: ServedTopic,
    queue_id: int,
    asked_queue_id: int,
    sys_flag: int,
    born_ms: int,
    flag: int,
    reconsume_times: int,
    text: str,
) -> bool:
    """Store a message that is plain but for its delivery time, and answer."""
    at = text.find(_START)
    asked = _ASKED(text, at) if at >= 0 else None
    # What was delayed before and is sent on is looked at with more care.
    if (
        asked is None
        or (at and text[at - 1] != VALUE_END)
        or "TIMER_OUT_MS" in text
        or "QUEUE_MS" in text
        or "REAL_" in text
    ):
        return False
    node = context.node
    store_ms = now_ms()
    asked_text = asked[0]
    due_ms = int(asked[1])
    if unit_ms := _UNITS_MS.get(asked_text[_UNIT_AT]):
        due_ms = store_ms + due_ms * unit_ms
    if not 0 < due_ms - store_ms <= node.timer.max_delay_ms:
        return False
    peer = context.peer
    timers = node.timer.topic
    partition = timers.partitions[0]
    id_base = timers.id_bases[0]
    offset = partition.next_offset
    # What makes it more than plain goes behind: there nobody looks.
    rest = text[:at] + text[asked.end() :]
    record = plain_record(
        timers.magic,
        timers.name_field,
        0,
        sys_flag,
        born_ms,
        peer.packed_address,
        store_ms,
        peer.packed_advertised,
        reconsume_times,
        asked_text + node.property_suffix,
        offset,
        id_base | offset,
        flag,
        context.body,
        f"TIMER_OUT_MS\x01{due_ms}\x02REAL_TOPIC\x01{topic.name}\x02"
        f"REAL_QID\x01{queue_id}\x02{rest}",
    )
    if record is None:
        return False
    done = partial(
        _stored, context, asked_queue_id, record[2][-1], id_base, topic.name, due_ms
    )
    partition.append([record], store_ms, done)
    return True


def _stored(
    context: Context,
    queue_id: int,
    unique_key: str,
    id_base: int,
    topic: str,
    due_ms: int,
    offset: int,
    error: LogError | None,
) -> None:
    """Answer the send with what has become of it, and how it can be recalled."""
    handle = recall.dump_parts(topic, context.node.config.broker, due_ms, unique_key)
    stored(context, queue_id, unique_key, id_base, 1, offset, error, handle)
