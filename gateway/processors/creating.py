"""What requests make: topics and groups, counted and audited as their senders'."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gateway.node.creations import GROUP, TOPIC, maker_of
from gateway.processors.changes import group_state, topic_state
from gateway.processors.recording import note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gateway.node.served_topic import ServedTopic
    from gateway.processors.context import Context
    from routing.api import Group


@contextmanager
def topic(context: Context, name: str) -> Iterator[None]:
    """Count a topic that may be made meanwhile, if it is.

    Raises:
        TooManyError: There are too many.
    """
    with _counted(context, TOPIC, name, context.node.routes.topics):
        yield


@contextmanager
def group(context: Context, name: str) -> Iterator[None]:
    """Count a group that may be made meanwhile, if it is.

    Raises:
        TooManyError: There are too many.
    """
    with _counted(context, GROUP, name, context.node.routes.groups):
        yield


@contextmanager
def _counted(
    context: Context, kind: str, name: str, known: Mapping[str, object]
) -> Iterator[None]:
    principal = context.principal
    if name in known or (principal is not None and principal.super):
        yield
        return
    creations = context.node.creations
    maker = maker_of(principal, context.peer.source)
    creations.take(kind, maker, len(known))
    try:
        yield
    finally:
        if name not in known:
            creations.give_back(kind, maker)


async def auto_create(
    context: Context, name: str, default_topic: str, queues: int
) -> ServedTopic | None:
    """As `Topics.auto_create`, of a topic that is counted and written down."""
    node = context.node

    def made(topic: ServedTopic) -> None:
        note(context, f"Topic:{topic.name}", None, topic_state(node, topic.name))

    with topic(context, name):
        return await node.topics.auto_create(name, default_topic, queues, made)


async def ensure_group(context: Context, name: str) -> Group | None:
    """As `Groups.ensure`, of a group that is counted and written down."""
    node = context.node

    def made(group: Group) -> None:
        note(context, f"Group:{group.name}", None, group_state(node, group.name))

    if found := node.groups.get(name):
        return found
    with group(context, name):
        return await node.groups.ensure(name, made)
