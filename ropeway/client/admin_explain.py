"""Why a message was not delivered to a group: what is known, and what it means.

Each look asks the brokers one thing and gives a finding, or none where it is no
explanation. They go from what concerns the message to what concerns the group.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client import admin_messages
from ropeway.client.admin_explain_group import Finding, about_group
from ropeway.client.admin_transactions import open_transactions
from ropeway.client.errors import AdminError, ResponseError, TopicNotFoundError
from ropeway.client.message import ReceivedMessage
from ropeway.client.send_request import DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.gateway.wire.commands.transactions import OpenHalf

_TIMER_TOPIC = "rmq_sys_wheel_timer"
_RECALL_TAG = "_RECALL_TAG_"


class Explanation(Struct, frozen=True):
    """All that was found; the first finding is the reason."""

    findings: list[Finding]
    message: ReceivedMessage | None = None
    """None where it is in no queue of its topic."""


async def explain(
    admin: Admin, msg_id: str, group: str, topic: str | None = None
) -> Explanation:
    """Find out why a message was not delivered to a group.

    Args:
        admin: Asks.
        msg_id: Its id, as its producer knows it or of its place.
        group: The group.
        topic: The message's topic; needed for ids of producers.

    Raises:
        AdminError: The id can only be looked up in a topic, and none is given.
        RemotingError: A broker cannot be reached, or refused.
    """
    try:
        message = await admin_messages.find(admin, msg_id, topic)
    except TopicNotFoundError:
        assert topic is not None
        return Explanation([_no_topic(topic)])
    except AdminError:
        if topic is None:
            raise
        return Explanation([await _not_in_topic(admin, msg_id, topic)])
    return Explanation(await about(admin, message, group), message)


async def about(admin: Admin, message: ReceivedMessage, group: str) -> list[Finding]:
    """Find out what a group has to do with a stored message; the reason is first.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
    found = await _about_retries(admin, message, group)
    return found + await about_group(admin, message, group)


# The message is not where it would be consumed from.


def _no_topic(topic: str) -> Finding:
    return Finding(
        "no-topic",
        f"there is no topic {topic}",
        "check its spelling, and the namespace of the producer; `ropeway topic list`",
    )


async def _not_in_topic(admin: Admin, msg_id: str, topic: str) -> Finding:
    if half := await _open_half(admin, msg_id):
        return _half(half)
    if waiting := await _query(admin, SCHEDULE_TOPIC, msg_id):
        level = waiting[-1].properties.get(names.DELAY, "?")
        return Finding(
            "waiting-for-its-time",
            f"it has waited in delay level {level} since {_ago(waiting[-1].store_ms)}",
            "wait until the level's time is over",
        )
    if waiting := await _query(admin, _TIMER_TOPIC, msg_id):
        return _timed(waiting)
    return Finding(
        "not-stored",
        f"topic {topic} has no message with the id {msg_id}",
        "see what sending it returned: only SEND_OK means that it is stored; and "
        "whether retention has deleted it: `ropeway topic stats` shows where queues "
        "begin",
    )


async def _open_half(admin: Admin, msg_id: str) -> OpenHalf | None:
    try:
        found = await open_transactions(admin, msg_id=msg_id, most=1)
    except ResponseError as error:
        if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        return None
    return found[0] if found else None


def _half(half: OpenHalf) -> Finding:
    return Finding(
        "half-message",
        f"it is a half message for topic {half.topic}: producer group "
        f"{half.producer_group} has neither committed nor rolled it back, and was "
        f"asked {half.checks} times",
        f"commit it; a producer of {half.producer_group} has to run, and to answer "
        "when it is asked how the transaction ended",
    )


def _timed(waiting: list[ReceivedMessage]) -> Finding:
    if any(one.tags == _RECALL_TAG for one in waiting):
        return Finding(
            "recalled",
            "it was recalled before its delivery time",
            "send it again; `ropeway message send`",
        )
    due = waiting[-1].properties.get(names.TIMER_OUT_MS, "")
    left = f" in {_span(int(due) - _now_ms())}" if due.isdecimal() else " later"
    return Finding(
        "waiting-for-its-time",
        f"its delivery time comes{left}",
        "wait, or take it back with `ropeway timer cancel`",
    )


async def _query(admin: Admin, topic: str, msg_id: str) -> list[ReceivedMessage]:
    try:
        return await admin.query(topic, msg_id, is_unique_key=True)
    except TopicNotFoundError:
        return []


# The group had it, and could not handle it.


async def _about_retries(
    admin: Admin, message: ReceivedMessage, group: str
) -> list[Finding]:
    dead = await _query(admin, f"{DLQ_PREFIX}{group}", message.msg_id)
    if dead:
        return [
            Finding(
                "dead-letter",
                f"group {group} gave it up after {dead[-1].reconsume_times} attempts, "
                f"{_ago(dead[-1].store_ms)} ago",
                "mend what fails, then `ropeway message dlq replay`",
            )
        ]
    tries = await _query(admin, f"{RETRY_PREFIX}{group}", message.msg_id)
    waits = [
        one
        for topic in (SCHEDULE_TOPIC, _TIMER_TOPIC)
        for one in await _query(admin, topic, message.msg_id)
        if one.properties.get(names.REAL_TOPIC) == f"{RETRY_PREFIX}{group}"
    ]
    if not tries and not waits:
        return []
    attempts = max(one.reconsume_times for one in (*tries, *waits))
    is_waiting = max((one.reconsume_times for one in waits), default=0) > max(
        (one.reconsume_times for one in tries), default=0
    )
    place = "waits for its next attempt" if is_waiting else "came again"
    return [
        Finding(
            "in-retry",
            f"group {group} could not handle it: {attempts} attempts, and it {place}",
            "see the consumers' log for what fails; it comes again by itself until "
            "the group's attempts are used up",
        )
    ]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _ago(time_ms: int) -> str:
    return _span(_now_ms() - time_ms)


def _span(ms: int) -> str:
    seconds = max(0, ms) // 1000
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
