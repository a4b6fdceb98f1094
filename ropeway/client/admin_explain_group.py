"""How a group stands to a stored message: its consumers, its filter, its offsets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client import admin_groups, admin_messages, admin_offsets, subscription
from ropeway.client.admin_groups import SilentClientError
from ropeway.client.routes import PERM_READ

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.client.admin_groups import Member, Membership
    from ropeway.client.lags import QueueLag
    from ropeway.client.message import MessageQueue, ReceivedMessage
    from ropeway.gateway.wire.bodies import SubscriptionData

_SQL = "SQL92"


class Finding(Struct, frozen=True):
    """Something that explains why a message has not come, or that it has."""

    code: str
    """One of those in docs/cli.md; for scripts."""
    text: str
    """What is the case."""
    advice: str
    """What to do."""


async def about_group(
    admin: Admin, message: ReceivedMessage, group: str
) -> list[Finding]:
    """Find out whether a group has not come to a stored message, or past it.

    Raises:
        RemotingError: A broker cannot be reached, or refused.
    """
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
        if not broker.perm & PERM_READ:
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
    asked = [_read_by(admin, group, one) for one in members.members]
    told = await asyncio.gather(*asked)
    silent = [one for one in told if isinstance(one, Finding)]
    if silent:
        return silent
    read = [one for one in told if not isinstance(one, Finding)]
    if any(one is None or message.queue in one for one in read):
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


async def _read_by(
    admin: Admin, group: str, member: Member
) -> list[MessageQueue] | Finding | None:
    """The queues of a client, None where it does not say, or that it is silent."""
    try:
        return await admin_groups.queues_of(admin, group, member.client_id)
    except SilentClientError:
        return Finding(
            "client-silent",
            f"client {member.client_id} at {member.address} is connected and does not "
            "answer, so nobody knows which queues it reads",
            "see whether its process hangs; if so, restart it",
        )
