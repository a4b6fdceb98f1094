"""What stands in the way of a migration, and what it leaves behind: checks by thing.

A problem keeps the thing out of the plan. A warning says what the plan does not do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.client.admin_doctor import Check
from ropeway.gateway.node import names
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.message_id import MAX_PARTITION

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ropeway.client.admin_broker_facts import BrokerFacts
    from ropeway.client.admin_inventory import (
        GroupFacts,
        Inventory,
        TopicFacts,
    )

_MOST_QUEUES = MAX_PARTITION + 1
CLOCK_WARNING_MS = 2_000
"""RocketMQ's brokers tell whole seconds."""
_COPY = (
    "copy what you need: ropeway consume {0} --context SOURCE --exit-at-end --json | "
    "ropeway produce {0} --input json"
)
_KEPT_DEFAULTS = (
    "attributes",
    "consume_from_min_enable",
    "consume_timeout_minute",
    "group_retry_policy",
    "notify_consumer_ids_changed_enable",
)
"""Settings of groups that `ropeway apply` does not set."""


def of_topic(
    topic: TopicFacts, readers: Sequence[str], target: Inventory
) -> Iterator[Check]:
    """What there is to say of a topic of users.

    Args:
        topic: The topic.
        readers: The groups that read it.
        target: What is where it is to go.
    """
    name = topic.topic
    yield from _of_name(topic, target)
    if topic.is_static:
        yield _problem(
            "topic",
            f"topic {name} has logical queues (it is static, RIP-21); there are none "
            "here",
            f"make an ordinary one: ropeway topic create {name}",
        )
    if not perm_of(topic):
        yield _problem(
            "topic",
            f"topic {name} may be neither read nor written at the source",
            "give it a permission there if it is in use: mqadmin updateTopicPerm",
        )
    total = queues_of(topic, target) * len(target.brokers)
    if total > _MOST_QUEUES:
        yield _problem(
            "topic",
            f"topic {name} has {total} queues; allowed: {_MOST_QUEUES} on all "
            "brokers together",
            "create it with fewer: ropeway topic create, or in the plan",
        )
    yield from _of_contents(topic, readers)


def _of_name(topic: TopicFacts, target: Inventory) -> Iterator[Check]:
    name = topic.topic
    advice = "have its producers and consumers use another name"
    if complaint := names.topic_complaint(name):
        yield _problem("topic", f"topic {name!r}: {complaint}", advice)
    elif is_own(name, target):
        yield _problem(
            "topic", f"topic {name}: the target keeps this name for itself", advice
        )


def _of_contents(topic: TopicFacts, readers: Sequence[str]) -> Iterator[Check]:
    name = topic.topic
    if topic.messages and is_compacted(topic):
        yield _warning(
            "topic",
            f"topic {name} is compacted: consumers that drain it leave its table at "
            "the source",
            _COPY.format(name),
        )
    elif topic.messages and not readers:
        yield _warning(
            "topic",
            f"topic {name}: no group reads its "
            f"{counted(topic.messages, 'message')}; they stay at the source",
            _COPY.format(name),
        )
    if any(config.order for config in topic.configs.values()):
        yield _warning(
            "topic",
            f"topic {name} is said to be ordered, which the plan does not set",
            "queues stay in order without it; set it by mqadmin updateTopic -o true",
        )
    counts = {
        (config.read_queue_nums, config.write_queue_nums)
        for config in topic.configs.values()
    }
    if len(counts) > 1 or any(read != write for read, write in counts):
        shown = ", ".join(f"{read} and {write}" for read, write in sorted(counts))
        yield _warning(
            "topic",
            f"topic {name} has not everywhere as many queues to read as to write: "
            f"{shown}; the plan has one number",
            "see `queues` in the plan",
        )


def of_topic_here(here: TopicFacts) -> Iterator[Check]:
    """What there is to say of a topic that the target has already."""
    name = here.topic
    if written := sum(span.end for span in here.spans):
        yield _problem(
            "topic",
            f"topic {name} exists at the target with other contents: "
            f"{counted(written, 'message')} were stored in it",
            f"delete it there if nobody needs it: ropeway topic delete {name}",
        )
    else:
        yield _warning(
            "topic",
            f"topic {name} exists at the target, empty; `ropeway apply` makes it as "
            "the plan says",
        )


def of_group(group: GroupFacts, here: GroupFacts | None) -> Iterator[Check]:
    """What there is to say of a consumer group of users.

    Args:
        group: The group.
        here: The one of the same name at the target, if there is one.
    """
    name = group.group
    if complaint := names.group_complaint(name):
        yield _problem(
            "group",
            f"group {name!r}: {complaint}",
            "have its consumers use another name",
        )
    left = group.lag()
    if group.membership.is_broadcast:
        yield _warning(
            "group",
            f"group {name} broadcasts: its consumers keep their offsets themselves",
            "at the target they begin where consumeFromWhere says; plan for a repeat "
            "or a gap",
        )
    elif left and not group.membership.members:
        yield _warning(
            "group",
            f"group {name} has {counted(left, 'message')} to read, and no consumer is "
            "connected",
            "start its consumers until its lag is 0, or delete it if it is not in use",
        )
    if group.pops:
        yield _warning(
            "group",
            f"group {name} is set to pop {', '.join(group.pops)}, which the plan does "
            "not set",
            "set it with mqadmin setConsumeMode at the target",
        )
    differing = _differing(group)
    if differing:
        yield _warning(
            "group",
            f"group {name}: the plan does not set {', '.join(differing)}",
            "set them with mqadmin updateSubGroup at the target",
        )
    if here is not None and any(lag.committed > 0 for lag in here.lags):
        yield _warning(
            "group",
            f"group {name} has consumed at the target already, and goes on where it "
            "is there",
            f"see ropeway offset show {name}",
        )


def _differing(group: GroupFacts) -> list[str]:
    """The names of settings that differ from what a new group gets."""
    fresh = bodies.GroupConfig(group_name=group.group)
    return [
        setting
        for setting in _KEPT_DEFAULTS
        if any(
            getattr(config, setting) != getattr(fresh, setting)
            for config in group.configs.values()
        )
    ]


def misuse(source: Inventory, target: Inventory) -> str | None:
    """Why nothing can move between two clusters; None where it can."""
    here = {broker.address for broker in target.brokers}
    if same := sorted(here & {broker.address for broker in source.brokers}):
        return f"source and target are one cluster: both have {', '.join(same)}"
    for broker in target.brokers:
        if not broker.is_ropeway:
            return (
                f"broker {broker.broker} of the target at {broker.address} is "
                f"RocketMQ {broker.version}; allowed: Ropeway"
            )
    return None


def of_source(source: Inventory) -> Iterator[Check]:
    """What there is to say of the source as a whole."""
    for name in source.silent:
        yield _problem(
            "broker",
            f"broker {name} of the source has no master now; what is on it is not in "
            "the plan",
            "start it, and plan again",
        )
    for broker in source.brokers:
        yield from _of_clock(broker)
    if len(source.clusters) > 1:
        yield _warning(
            "source",
            f"the name server knows {len(source.clusters)} clusters, which are planned "
            f"together: {', '.join(source.clusters)}",
        )


def _of_clock(broker: BrokerFacts) -> Iterator[Check]:
    if broker.clock_ms is None:
        return
    off_ms = abs(broker.clock_ms)
    if max(0, off_ms - broker.clock_within_ms) >= CLOCK_WARNING_MS:
        way = "ahead of" if broker.clock_ms > 0 else "behind"
        yield _warning(
            "clock",
            f"the clock of the source's broker {broker.broker} is about "
            f"{off_ms // 1000} s {way} this machine's",
            "set all clocks by NTP (chrony); delivery times and look-ups by time are "
            "off by as much",
        )


def of_room(source: Inventory, target: Inventory) -> Iterator[Check]:
    """Whether the target has room for as much as the source keeps."""
    kept = sum(broker.stored_bytes or 0 for broker in source.brokers)
    free = [one.free_bytes for one in target.brokers if one.free_bytes is not None]
    if free and kept > sum(free):
        yield _warning(
            "disk",
            f"the source keeps {size_text(kept)} of messages, and the target's disks "
            f"have {size_text(sum(free))} free; the same retention takes as much",
            "make room, or shorten log.retention_hours at the target",
        )


def topics_of_users(cluster: Inventory) -> list[TopicFacts]:
    """The topics that move: neither own ones, nor those of retries and dead letters."""
    return [
        one
        for one in cluster.topics
        if not (is_own(one.topic, cluster) or names.is_derived(one.topic))
    ]


def is_own(name: str, cluster: Inventory) -> bool:
    """Whether a topic is a system's, a broker's or a cluster's own there."""
    own = {*cluster.clusters, *(broker.broker for broker in cluster.brokers)}
    own |= {names.reply_topic(one) for one in cluster.clusters}
    # RocketMQ 5.5 has some that older versions do not know.
    is_system = names.is_system_topic(name) or name.startswith("RMQ_SYS_")
    return is_system or name in own


def is_compacted(topic: TopicFacts) -> bool:
    """Whether it keeps the last message of each key alone."""
    return any(
        config.attributes.get("cleanup.policy") == "COMPACTION"
        for config in topic.configs.values()
    )


def perm_of(topic: TopicFacts) -> int:
    """What clients may do on some broker: the sum of 4 read, 2 write."""
    perm = 0
    for config in topic.configs.values():
        perm |= config.perm & 6
    return perm


def queues_of(topic: TopicFacts, target: Inventory) -> int:
    """How many queues it is to have on each broker of the target."""
    total = sum(
        max(config.read_queue_nums, config.write_queue_nums)
        for config in topic.configs.values()
    )
    return max(1, -(-total // max(1, len(target.brokers))))


def attributes(
    name: str, wanted: Mapping[str, str]
) -> tuple[dict[str, str], list[Check]]:
    """Those of a topic's attributes that can be set here, and a warning for others."""
    from ropeway.gateway.node.attributes import (  # noqa: PLC0415 - a part of nodes
        BadAttributeError,
        alter_topic,
    )

    kept: dict[str, str] = {}
    found = []
    for attribute, value in wanted.items():
        try:
            kept |= alter_topic(None, {f"+{attribute}": value})
        except BadAttributeError as error:
            text = f"topic {name}: attribute {attribute} is not in the plan: {error}"
            found.append(_warning("topic", text))
    return kept, found


def of_user(name: str) -> Iterator[Check]:
    """What there is to say of a user that the target does not have."""
    yield _warning(
        "user",
        f"user {name}: the plan has no passwords",
        "give a password_file; apply refuses the user without",
    )


def of_users_here(names: Collection[str]) -> Iterator[Check]:
    """Say which users the target has already."""
    for name in names:
        yield _warning(
            "user",
            f"user {name} exists at the target, and is not in the plan",
            "compare both: ropeway user list",
        )


def unreadable(subjects: Collection[str]) -> Iterator[Check]:
    """Say whose policies a plan cannot have."""
    for subject in subjects:
        yield _warning(
            "policy",
            f"policies of {subject} are not in the plan; allowed: User:NAME",
            "see ropeway acl list at the source",
        )


def counted(count: int, what: str) -> str:
    """A number with its noun."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def size_text(size: int) -> str:
    """A number of bytes in the unit that fits."""
    number = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:  # noqa: PLR2004 - of binary units
            return f"{number:.1f} {unit}" if unit != "B" else f"{size} B"
        number /= 1024
    return f"{number:.1f} TiB"


def _problem(check: str, text: str, advice: str = "") -> Check:
    return Check(check, "problem", text, advice)


def _warning(check: str, text: str, advice: str = "") -> Check:
    return Check(check, "warning", text, advice)
