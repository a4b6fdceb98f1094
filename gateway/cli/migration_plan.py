"""What a migration would create at its target, and what it would not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from ropeway.client.versions import version_text
from ropeway.gateway.cli import migration_checks as checks
from ropeway.gateway.cli.group import settings_of
from ropeway.gateway.cli.migration_checks import counted
from ropeway.gateway.node.names import is_listed_group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.client.admin_doctor import Check
    from ropeway.client.admin_inventory import GroupFacts, Inventory, TopicFacts

_BUILT_IN_GROUPS = frozenset(
    {
        *("CID_ONSAPI_OWNER", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_PULL"),
        *("CID_ONS-HTTP-PROXY", "CLIENT_INNER_PRODUCER", "DEFAULT_CONSUMER"),
        *("DEFAULT_PRODUCER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP"),
        *("SELF_TEST_P_GROUP", "TOOLS_CONSUMER", "__MONITOR_CONSUMER"),
    }
)
"""Groups that brokers make for themselves. Source: MixAll.java and
SubscriptionGroupManager.init, RocketMQ 5.5.0."""


class Planned(NamedTuple):
    """Something that a source has, and what the plan says of it."""

    name: str
    setup: dict[str, Any]
    """As `ropeway apply` reads it."""
    notes: list[str]
    """What the source holds of it, for people."""
    checks: list[Check]

    @property
    def moves(self) -> bool:
        """Whether nothing stands in its way."""
        return all(one.state != "problem" for one in self.checks)


class Plan(NamedTuple):
    """All of a migration that can be said before it begins."""

    source: Inventory
    target: Inventory
    readers: dict[str, list[str]]
    """The groups of the source that read each topic."""
    topics: list[Planned]
    groups: list[Planned]
    users: list[Planned]
    policies: list[Planned]
    checks: list[Check]
    """Of the clusters as a whole."""

    @property
    def everything(self) -> list[Planned]:
        """Topics, groups, users and policies."""
        return [*self.topics, *self.groups, *self.users, *self.policies]

    def problems(self) -> list[Check]:
        """What keeps something from moving."""
        found = [*self.checks, *(one for it in self.everything for one in it.checks)]
        return [one for one in found if one.state == "problem"]


def make(source: Inventory, target: Inventory, more: list[Check]) -> Plan:
    """Plan a migration.

    Args:
        source: What moves.
        target: What is there already.
        more: What else was found of the target.
    """
    policies, subjects = _policies(source)
    readers = source.readers()
    topics_here = {one.topic: one for one in target.topics}
    groups_here = {one.group: one for one in target.groups}
    known = {user.username or "" for user in target.users}
    both = known & {user.username or "" for user in source.users}
    return Plan(
        source=source,
        target=target,
        readers=readers,
        topics=[
            _topic(one, readers.get(one.topic, []), target, topics_here.get(one.topic))
            for one in checks.topics_of_users(source)
        ],
        groups=[
            _group(one, groups_here.get(one.group))
            for one in source.groups
            if is_listed_group(one.group) and one.group not in _BUILT_IN_GROUPS
        ],
        users=_users(source, known),
        policies=policies,
        checks=[
            *checks.of_source(source),
            *checks.of_room(source, target),
            *checks.unreadable(subjects),
            *checks.of_users_here(sorted(both)),
            *more,
        ],
    )


def _topic(
    topic: TopicFacts,
    readers: list[str],
    target: Inventory,
    here: TopicFacts | None,
) -> Planned:
    attributes = {
        name: value
        for _, config in sorted(topic.configs.items())
        for name, value in config.attributes.items()
    }
    kept, refused = checks.attributes(topic.topic, attributes)
    setup: dict[str, Any] = {
        "queues": checks.queues_of(topic, target),
        "perm": checks.perm_of(topic),
    }
    if kept:
        setup["attributes"] = kept
    queues = counted(len(topic.spans), "queue")
    brokers = counted(len(topic.configs), "broker")
    notes = [f"{counted(topic.messages, 'message')} in {queues} on {brokers}"]
    if readers:
        notes.append(f"read by {', '.join(readers)}")
    found = [*checks.of_topic(topic, readers, target), *refused]
    if here is not None:
        found += checks.of_topic_here(here)
    return Planned(topic.topic, setup, notes, found)


def _group(group: GroupFacts, here: GroupFacts | None) -> Planned:
    config = next(iter(group.configs.values()))
    notes = [f"{counted(group.lag(), 'message')} to read"]
    if group.model:
        count = counted(len(group.membership.members), "consumer")
        notes.append(f"{count}, {group.model}")
    else:
        notes.append("no consumer is connected")
    return Planned(
        group.group,
        structs.asdict(settings_of(config)),
        notes,
        [*checks.of_group(group, here)],
    )


def _users(source: Inventory, known: set[str]) -> list[Planned]:
    found = []
    for user in source.users:
        name = user.username or ""
        setup = {"type": user.user_type, "status": user.user_status}
        given = {key: value for key, value in setup.items() if value is not None}
        if name not in known:
            found.append(Planned(name, given, [], [*checks.of_user(name)]))
    return found


def _policies(source: Inventory) -> tuple[list[Planned], list[str]]:
    """Policies, and subjects that are no users."""
    found: dict[tuple[str, str], Planned] = {}
    others: set[str] = set()
    for info in source.policies:
        kind, _, user = (info.subject or "").partition(":")
        if kind != "User" or not user:
            others.add(info.subject or "nobody")
            continue
        for policy in info.policies or ():
            if policy.policy_type == "Default":
                others.add(f"{info.subject} (Default)")
                continue
            for entry in policy.entries or ():
                resource = entry.resource or ""
                setup = {
                    "user": user,
                    "resource": resource,
                    "actions": entry.actions or [],
                    "decision": entry.decision or "Allow",
                    "sources": entry.source_ips or [],
                }
                name = f"{user} {resource}"
                found[user, resource] = Planned(name, setup, [], [])
    return list(found.values()), sorted(others)


def sets(plan: Plan) -> list[tuple[list[str], list[str]]]:
    """Topics that are read by one group, or by groups of which some read both.

    Returns:
        The topics and the groups of each such set, of those with several topics.
    """
    set_of: dict[str, int] = {}
    found: dict[int, set[str]] = {}
    mine = {one.name for one in plan.topics}
    for number, group in enumerate(plan.source.groups):
        topics = group.topics & mine
        found[number] = topics
        for other in {set_of[topic] for topic in topics if topic in set_of}:
            found[number] |= found.pop(other)
        set_of |= dict.fromkeys(found[number], number)
    return sorted(
        (sorted(topics), sorted({one for it in topics for one in plan.readers[it]}))
        for topics in found.values()
        if len(topics) > 1
    )


def client_counts(source: Inventory) -> Iterator[tuple[str, int]]:
    """How many clients there are of each language and version, most first."""
    kinds = {one.client_id: (one.language, one.version) for one in source.clients}
    for (language, version), count in Counter(kinds.values()).most_common():
        yield f"{language} {version_text(version)}", count
