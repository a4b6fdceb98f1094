"""A plan of a migration as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, structs

from ropeway.client.versions import version_text
from ropeway.gateway.cli.group import settings_of
from ropeway.gateway.cli.migration_plan import sets
from ropeway.gateway.cli.offset import offset_rows
from ropeway.gateway.cli.rows.access import PolicyRow, UserRow
from ropeway.gateway.cli.rows.clients import ClientRow
from ropeway.gateway.cli.rows.migration import (
    MigrationPlan,
    PlannedGroup,
    PlannedTopic,
    SourceBroker,
    TopicSet,
    UnderWay,
)
from ropeway.gateway.cli.topic_views import setup_rows, span_rows

if TYPE_CHECKING:
    from ropeway.client.admin_inventory import GroupFacts, TopicFacts
    from ropeway.gateway.cli.migration_plan import Plan


def row(plan: Plan) -> MigrationPlan:
    """All of a plan."""
    source = plan.source
    topics = {one.topic: one for one in source.topics}
    groups = {one.group: one for one in source.groups}
    return MigrationPlan(
        brokers=[
            SourceBroker(
                broker=one.broker,
                cluster=one.cluster,
                address=one.address,
                version=one.version,
                clock_ms=UNSET if one.clock_ms is None else one.clock_ms,
                bytes=UNSET if one.stored_bytes is None else one.stored_bytes,
            )
            for one in source.brokers
        ],
        topics=[_topic(topics[one.name], plan, moves=one.moves) for one in plan.topics],
        groups=[_group(groups[one.name], moves=one.moves) for one in plan.groups],
        clients=[
            ClientRow(**{**structs.asdict(one), "version": version_text(one.version)})
            for one in source.clients
        ],
        users=[
            UserRow(user=one.username, type=one.user_type, status=one.user_status)
            for one in source.users
        ],
        user_policies=[
            PolicyRow(
                user=(info.subject or "").removeprefix("User:"),
                resource=entry.resource,
                actions=entry.actions or [],
                decision=entry.decision,
                sources=entry.source_ips or [],
                policy=policy.policy_type,
            )
            for info in source.policies
            for policy in info.policies or ()
            for entry in policy.entries or ()
        ],
        sets=[TopicSet(topics=topics, groups=groups) for topics, groups in sets(plan)],
        under_way=[
            UnderWay(
                broker=one.broker,
                kind=one.kind,
                messages=one.messages,
                at_most=one.is_bound,
                topics=one.topics,
            )
            for one in source.under_way
        ],
        checks=[*plan.checks, *(one for it in plan.everything for one in it.checks)],
        untold=source.untold,
    )


def _topic(topic: TopicFacts, plan: Plan, *, moves: bool) -> PlannedTopic:
    return PlannedTopic(
        topic=topic.topic,
        moves=moves,
        messages=topic.messages,
        groups=plan.readers.get(topic.topic, []),
        brokers=setup_rows(topic.topic, dict(sorted(topic.configs.items()))),
        queues=span_rows(topic.spans),
    )


def _group(group: GroupFacts, *, moves: bool) -> PlannedGroup:
    return PlannedGroup(
        group=group.group,
        moves=moves,
        model=group.model,
        lag=group.lag(),
        consumers=[one.client_id for one in group.membership.members],
        settings=settings_of(next(iter(group.configs.values()))),
        queues=offset_rows(group.lags),
    )
