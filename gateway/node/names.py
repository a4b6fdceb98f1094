"""Names of topics and groups: which are legal, and which the system keeps for itself.

Source: TopicValidator.java and MixAll.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import re

ACCESS_NAMESPACES = "ROPEWAY_ACL"
"""How the names of settings begin that no client may see or change: who may do what,
and which cluster this is."""

DELETIONS_NAMESPACE = "ROPEWAY_DELETIONS"
"""That of what nodes keep of deleted topics, likewise for them alone."""

REQUEST_MODES = "MESSAGE_REQUEST_MODE"
"""The namespace of settings that say how groups consume topics."""
WRITE_PERMISSION = "ROPEWAY_WRITE_PERMISSION"
"""That of settings that name the brokers which nobody is to send to."""

DRAINS = "ROPEWAY_DRAINS"
"""That of settings that name the brokers which get no queues, and why."""

RESET_SIGN = "reset:"
"""Before a group's name, where offsets keep where it was moved to."""
MOVED_SIGN = "moved:"
"""Before the names of groups and topics, where offsets keep what another broker handed
over with a queue."""
ORDER_SIGN = "order:"
"""Before a topic's name, where offsets keep until when a queue that is popped in order
is blocked."""
LITE_SIGN = "lite:"
"""Before a group's name, where offsets keep how far it is in lite topics."""
LITE_QUEUE_PREFIX = "%LMQ%$"
LITE_QUEUE_END = "$"
"""Between a topic and its lite topic, in the name of that progress."""

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
AUTO_CREATE_TOPIC = "TBW102"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
SCHEDULE_GROUP = "CID_RMQ_SYS_SCHEDULE"
REPLY_SUFFIX = "_REPLY_TOPIC"
TIMER_TOPIC = "rmq_sys_wheel_timer"
POP_TOPIC = "rmq_sys_pop_ledger"
TIMER_GROUP = "CID_RMQ_SYS_TIMER"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
HALF_ENDS_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
GIVEN_UP_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
TRANSACTIONS_GROUP = "CID_RMQ_SYS_TRANS"
STAGED_TOPIC = "rmq_sys_ropeway_staged"
BATCHES_TOPIC = "rmq_sys_ropeway_batches"
BATCHES_GROUP = "CID_RMQ_SYS_ROPEWAY_BATCHES"

SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
REPLAY_GROUP = "ropeway-dlq"
"""Its offsets say how far `ropeway message dlq replay` has come (ropeway.client)."""
COMMAND_GROUPS = frozenset({REPLAY_GROUP, "ropeway-cli", "ropeway-bench"})
"""Those of our commands: they look at messages, and commit none that they have read."""

MAX_TOPIC_LENGTH = 127
MAX_GROUP_LENGTH = 120
MAX_RETRY_TOPIC_LENGTH = 255

SYSTEM_TOPICS = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        "BenchmarkTest",
        HALF_TOPIC,
        HALF_ENDS_TOPIC,
        GIVEN_UP_TOPIC,
        TRACE_TOPIC,
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
        "CHECKPOINT_TOPIC",
    }
)
_OF_NOBODY = frozenset({AUTO_CREATE_TOPIC, "BenchmarkTest", "SELF_TEST_TOPIC"})
"""System topics that hold nothing of other topics: rules are for them as for any."""
NOT_FOR_SENDING = SYSTEM_TOPICS - {
    AUTO_CREATE_TOPIC,
    "BenchmarkTest",
    TRACE_TOPIC,
    "CHECKPOINT_TOPIC",
} | {TIMER_TOPIC, POP_TOPIC, STAGED_TOPIC, BATCHES_TOPIC}
NOT_FOR_READING = frozenset({HALF_TOPIC, HALF_ENDS_TOPIC, STAGED_TOPIC, BATCHES_TOPIC})
"""What is in them is not sent yet, or is nobody's business."""

_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+\Z").match


def is_inner(group: str) -> bool:
    """Whether offsets keep something else under that name than a group's progress."""
    return group.startswith((RESET_SIGN, LITE_SIGN, MOVED_SIGN))


def is_system_group(group: str) -> bool:
    """Whether a name is no group of clients: the system's own, or an inner one."""
    return group.startswith(SYSTEM_GROUP_PREFIX) or is_inner(group)


def is_listed_group(group: str) -> bool:
    """Whether lists show a group: it consumes, so what it has not read is a lag."""
    return group not in COMMAND_GROUPS and not is_system_group(group)


def is_inner_topic(topic: str) -> bool:
    """Whether offsets keep something under that name, which is no topic's.

    It is beside a group's progress in the topic that it has in it, or in a lite topic.
    """
    return topic.startswith((ORDER_SIGN, MOVED_SIGN, LITE_QUEUE_PREFIX))


def topic_of_progress(name: str) -> str:
    """In whose queues progress is that is kept under a name: that topic's, mostly."""
    if not name.startswith(LITE_QUEUE_PREFIX):
        return name
    return name.removeprefix(LITE_QUEUE_PREFIX).rpartition(LITE_QUEUE_END)[0]


def topic_complaint(name: str) -> str | None:
    """Why a name cannot be a topic's; None where it can."""
    derived = name.startswith((RETRY_PREFIX, DLQ_PREFIX))
    limit = MAX_RETRY_TOPIC_LENGTH if derived else MAX_TOPIC_LENGTH
    return _complaint("topic", name, limit)


def group_complaint(name: str) -> str | None:
    """Why a name cannot be a group's; None where it can."""
    return _complaint("group", name, MAX_GROUP_LENGTH)


def _complaint(what: str, name: str, limit: int) -> str | None:
    if not name.strip():
        return f"The specified {what} is blank."
    if len(name) > limit:
        return (
            f"The specified {what} of {len(name)} characters is longer than "
            f"{what} max length: {limit}"
        )
    if not _LEGAL(name):
        return (
            f"The specified {what}: {name:.200}, contains illegal characters, "
            "allowing only ^[%|a-zA-Z0-9_-]+$"
        )
    return None


def is_system_topic(name: str) -> bool:
    """Whether the topic is not a user's."""
    return name in SYSTEM_TOPICS or name.startswith("rmq_sys_")


def is_of_users(name: str) -> bool:
    """Whether a topic may be a client's: it is no group's, nor the system's."""
    return not (is_derived(name) or is_system_topic(name) or topic_complaint(name))


def stays_with_broker(topic: str, cluster: str, broker: str) -> bool:
    """Whether a topic is of use to a broker alone, so that its queues never move."""
    return (
        topic in NOT_FOR_READING
        or topic in (SCHEDULE_TOPIC, AUTO_CREATE_TOPIC, cluster, broker)
        or topic == reply_topic(cluster)
        or topic.startswith("rmq_sys_")
    )


def is_derived(topic: str) -> bool:
    """Whether a topic holds retries or dead letters of a group."""
    return topic.startswith((RETRY_PREFIX, DLQ_PREFIX))


def origin_of(topic: str, says: str | None) -> str:
    """The topic that a message was sent to first.

    Args:
        topic: Where it is stored.
        says: What its properties say, which is believed of retries and dead letters
            alone: elsewhere, its sender may have written it.
    """
    return says if says and is_derived(topic) else topic


def is_for_superusers(topic: str, cluster: str) -> bool:
    """Whether a topic holds what was sent to others, whoever may read those.

    Half, timed and popped messages, transactions that were given up, traces, replies.
    """
    return topic == reply_topic(cluster) or (
        is_system_topic(topic) and topic not in _OF_NOBODY
    )


def takes_from_clients(topic: str, cluster: str) -> bool:
    """Whether clients send to a system topic, by rules, as they do to their own."""
    return topic in (TRACE_TOPIC, reply_topic(cluster))


def reserved_complaint(name: str, cluster: str, broker: str) -> str | None:
    """Why an administrator may not change or delete a topic; None where they may.

    Topics named like a cluster or a broker are there for clients that ask whether
    those are.
    """
    if is_system_topic(name) or name in (cluster, broker, reply_topic(cluster)):
        return f"The topic[{name:.200}] is conflict with system topic."
    return None


def reply_topic(cluster: str) -> str:
    """Where clients look for a broker that takes replies, and replies are kept."""
    return cluster + REPLY_SUFFIX


def retry_topic(group: str) -> str:
    """Where a group's failed messages wait to be tried again."""
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """Where a group's messages go when all tries have failed."""
    return DLQ_PREFIX + group
