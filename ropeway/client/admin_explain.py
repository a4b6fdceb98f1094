"""Why a message was not delivered to a group: what is known, and what it means.

Each look asks the brokers one thing and gives a finding, or none where it is no
explanation. They go from what concerns the message to what concerns the group.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client import admin_groups, admin_messages, admin_offsets, subscription
from ropeway.client.errors import AdminError, TopicNotFoundError
from ropeway.client.message import ReceivedMessage
from ropeway.client.send_request import DLQ_PREFIX, RETRY_PREFIX
from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.transactions import FindHalf, OpenHalf

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.client.admin_groups import Membership
    from ropeway.client.lags import QueueLag
    from ropeway.gateway.wire.bodies import SubscriptionData

_SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
_TIMER_TOPIC = "rmq_sys_wheel_timer"
_RECALL_TAG = "_RECALL_TAG_"
_READABLE = 4
_SQL = "SQL92"


class Finding(Struct, frozen=True):
    """Something that explains why a message has not come, or that it has."""

    code: str
    """One of those in docs/cli.md; for scripts."""
    text: str
    """What is the case."""
    advice: str
    """What to do."""


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
    found = await _about_retries(admin, message, group)
    found += await _about_group(admin, message, group)
    return Explanation(found, message)


# The message is not where it would be consumed from.


def _no_topic(topic: str) -> Finding:
    return Finding(
        "no-topic",
        f"there is no topic {topic}",
        "check its spelling, and the namespace of the producer; `ropeway topic list`",
    )


async def _not_in_topic(admin: Admin, msg_id: str, topic: str) -> Finding:
    for answer in await admin.ask_masters(
        FindHalf(unique_key=msg_id),
        expect=(
            ResponseCode.SUCCESS,
            ResponseCode.QUERY_NOT_FOUND,
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        ),
    ):
        if answer.code == ResponseCode.SUCCESS:
            return _half(answer.json(OpenHalf))
    if waiting := await _query(admin, _SCHEDULE_TOPIC, msg_id):
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
        for topic in (_SCHEDULE_TOPIC, _TIMER_TOPIC)
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


# The group has not come to it, or past it.


async def _about_group(
    admin: Admin, message: ReceivedMessage, group: str
) -> list[Finding]:
    config = await admin_groups.config(admin, group)
    members = await admin_groups.membership(admin, group)
    if config is None and not members.members:
        return [
            Finding(
                "no-group",
                f"no broker knows group {group}",
                "check its spelling; it is made when its first consumer starts",
            )
        ]
    found = []
    if config is not None and not config.consume_enable:
        found.append(
            Finding(
                "group-disabled",
                f"group {group} is not allowed to consume",
                f"ropeway group update {group} --consume",
            )
        )
    for broker in await admin.topic_configs(message.queue.topic):
        if not broker.perm & _READABLE:
            found.append(
                Finding(
                    "topic-not-readable",
                    f"topic {message.queue.topic} may not be read: perm {broker.perm}",
                    f"ropeway topic update {message.queue.topic} --perm 6",
                )
            )
            break
    found += await _about_subscription(admin, message, group, members)
    found += await _about_offset(admin, message, group, members)
    return found


async def _about_subscription(
    admin: Admin, message: ReceivedMessage, group: str, members: Membership
) -> list[Finding]:
    if not members.members:
        return [
            Finding(
                "nobody-consumes",
                f"no consumer of group {group} is connected",
                "start one",
            )
        ]
    wanted = members.subscriptions.get(message.topic)
    if wanted is None:
        topics = ", ".join(sorted(members.subscriptions)) or "none"
        return [
            Finding(
                "not-subscribed",
                f"the consumers of group {group} do not subscribe to topic "
                f"{message.topic}, but to: {topics}",
                "all consumers of a group must subscribe to the same topics",
            )
        ]
    if not await _is_wanted(admin, message, wanted):
        return [
            Finding(
                "filtered",
                f"the filter {wanted.sub_string!r} of group {group} does not match: "
                f"the message has the tag {message.tags!r}",
                "change the filter or the message; consumers of one group must all "
                "have the same filter",
            )
        ]
    return []


async def _is_wanted(
    admin: Admin, message: ReceivedMessage, wanted: SubscriptionData
) -> bool:
    if wanted.expression_type != _SQL:
        parsed = subscription.parse(message.topic, wanted.sub_string, 0)
        return parsed.wants(message.tags)
    # Who filters is who knows: the broker is asked for the message with that filter.
    found, _ = await admin_messages.pull(
        admin,
        message.queue,
        message.queue_offset,
        expression=wanted.sub_string,
        expression_type=_SQL,
        count=1,
    )
    return any(one.queue_offset == message.queue_offset for one in found)


async def _about_offset(
    admin: Admin, message: ReceivedMessage, group: str, members: Membership
) -> list[Finding]:
    queue = message.queue
    if members.is_broadcast:
        return [
            Finding(
                "broadcast",
                f"group {group} broadcasts: each consumer keeps its own offsets",
                "look at the consumers; brokers know nothing of their progress",
            )
        ]
    committed = await admin_offsets.committed(admin, group, queue)
    at = f"offset {message.queue_offset} of queue {queue.queue_id} on broker "
    at += queue.broker_name
    if committed is not None and committed > message.queue_offset:
        return [
            Finding(
                "passed",
                f"the message is at {at}, and the group goes on at {committed}: it was "
                "handled, did not match the filter then, or was skipped by a reset",
                "look for it in the consumers' log; to get it again: "
                f"ropeway offset reset {group} {queue.topic} --queue {queue.queue_id} "
                f"--to-offset {message.queue_offset}",
            )
        ]
    found = await _about_assignment(admin, message, group, members)
    lags = await admin_offsets.progress(admin, group, queue.topic)
    lag = next((one for one in lags if one.queue == queue), None)
    if not members.members:
        # What was pulled is with nobody any more.
        lag = None
    return [*found, _before(message, committed, lag, at)]


def _before(
    message: ReceivedMessage, committed: int | None, lag: QueueLag | None, at: str
) -> Finding:
    if lag is not None and lag.pulled > message.queue_offset:
        return Finding(
            "with-a-consumer",
            f"the message is at {at}; a consumer has got it and not said that it is "
            "done, or an earlier one is not done",
            "see what the consumers do; offsets are stored every few seconds",
        )
    if committed is None:
        return Finding(
            "never-read",
            f"the message is at {at}, where the group has never read",
            "a new group begins where its consumers say: ConsumeFrom of the first one "
            "that starts",
        )
    before = message.queue_offset - committed
    return Finding(
        "behind",
        f"the message is at {at}, and the group goes on at {committed}: "
        + (f"{before} messages come before it" if before else "it is the next"),
        "wait, or add consumers; `ropeway group show` has the lag of all queues",
    )


async def _about_assignment(
    admin: Admin, message: ReceivedMessage, group: str, members: Membership
) -> list[Finding]:
    """Whether one of the consumers reads the queue, if all of them say what they do."""
    if not members.members:
        return []
    for member in members.members:
        queues = await admin_groups.queues_of(admin, group, member.client_id)
        if queues is None or message.queue in queues:
            return []
    return [
        Finding(
            "not-assigned",
            f"none of the {len(members.members)} consumers reads queue "
            f"{message.queue.queue_id} on broker {message.queue.broker_name}",
            "wait half a minute for them to share the queues anew; else their "
            "subscriptions differ, or one of them cannot see the others",
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
