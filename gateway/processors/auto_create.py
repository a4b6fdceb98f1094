"""What requests make: topics and groups, counted and audited as their senders'."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ropeway.gateway.node.creations import GROUP, TOPIC, maker_of, weight
from ropeway.gateway.processors.auditing import note
from ropeway.gateway.processors.changes import group_state, topic_state
from ropeway.gateway.processors.context import Refusal
from ropeway.gateway.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.processors.context import Context
    from ropeway.routing.api import Group

_CREATING_S = 0.01
"""What it takes to make a topic, most of it waiting for the disk: one in a tick."""


def topic(context: Context, name: str, queues: int = 1) -> AbstractContextManager[None]:
    """Count a topic that may be created within the block, or get more queues.

    Raises:
        TooManyError: There are too many; raised on entry.
    """
    known = context.node.routes.topics
    there = known.get(name)
    had = max(there.read_queue_nums, there.write_queue_nums) if there else None
    return _counted(context, TOPIC, name, known, queues, had)


def group(context: Context, name: str, queues: int = 1) -> AbstractContextManager[None]:
    """Count a group that may be created within the block, likewise, by its retries."""
    known = context.node.routes.groups
    there = known.get(name)
    had = there.retry_queue_nums if there else None
    return _counted(context, GROUP, name, known, queues, had)


@contextmanager
def _counted(
    context: Context,
    kind: str,
    name: str,
    known: Mapping[str, object],
    queues: int,
    had: int | None,
) -> Iterator[None]:
    count = weight(queues) - (0 if had is None else weight(had))
    if count <= 0:
        yield
        return
    principal, creations = context.principal, context.node.creations
    maker = maker_of(principal, context.peer.source)
    with creations.under_way(kind, maker):
        if principal is not None and principal.super:
            yield
            return
        creations.take(kind, maker, len(known) if had is None else 0, count)
        try:
            yield
        finally:
            if name not in known:
                creations.give_back(kind, maker, count)


async def auto_create(
    context: Context, name: str, default_topic: str, queues: int
) -> ServedTopic | None:
    """Create a topic as `Topics.auto_create` does, counted and audited."""
    node = context.node

    def made(topic: ServedTopic) -> None:
        note(context, f"Topic:{topic.name}", None, topic_state(node, topic.name))

    if found := node.topics.get(name):
        return found
    with topic(context, name):
        await context.slices().pause(_CREATING_S)
        return await node.topics.auto_create(name, default_topic, queues, made)


async def ensure_group(context: Context, name: str, remark: str) -> Group:
    """Return a group's set-up; create it, counted and audited, where it is missing.

    Args:
        context: The request that needs it.
        name: The group's.
        remark: What the client is told where it is not to be created.

    Raises:
        Refusal: It is not there, and is not to be created.
        TooManyError: There are too many.
    """
    node = context.node

    def made(group: Group) -> None:
        note(context, f"Group:{group.name}", None, group_state(node, group.name))

    if found := node.groups.get(name):
        return found
    with group(context, name):
        created = await node.groups.ensure(name, made)
    if created is None:
        raise Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    return created
