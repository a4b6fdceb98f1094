"""What a request must be allowed: declared with its processor, by these few words.

`handles(PullMessage, on_topic(SUB) & on_group(SUB))` says that a pull needs Sub on what
its fields `topic` and `consumer_group` name. A retry topic is its group's, and of the
topic that was popped; where its name has several readings, each of them is needed.

Source: DefaultAuthorizationContextBuilder and the headers' RocketMQAction, RocketMQ
5.5.0, which check nothing where a header has no annotation, or a field is left out.
Here such a request needs permission for all topics, all groups or the cluster.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ropeway.acl.api import Action, Need, Resource, ResourceKind
from ropeway.gateway.node import names, retry_names
from ropeway.gateway.wire.properties import REMEMBERED_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ropeway.gateway.node.node import Node
    from ropeway.gateway.processors.context import Context

    Ask = Callable[[Any, Context], Iterator[Need]]

PUB, SUB = Action.PUB, Action.SUB
CREATE, UPDATE, DELETE = Action.CREATE, Action.UPDATE, Action.DELETE
GET, LIST = Action.GET, Action.LIST

ALL = "*"
"""Stands for all topics or groups; rules for all of them match it, no others."""


class Needs:
    """What requests of one code need; called with a header and its context.

    Args:
        ask: Says what one request needs.
        of_nodes: Whether only nodes of the cluster send it, which sign it themselves;
            nobody else's permission is asked.
    """

    def __init__(self, ask: Ask, *, of_nodes: bool = False) -> None:
        self._ask = ask
        self.of_nodes = of_nodes

    def __call__(self, header: Any, context: Context) -> Iterator[Need]:
        """What a request needs; nothing, where whoever is known may send it."""
        return self._ask(header, context)

    def __and__(self, other: Needs) -> Needs:
        """Both of them."""
        return Needs(lambda header, context: _both(self, other, header, context))


NEEDS: dict[int, Needs] = {}
"""What the sender of a request must be allowed, by the request's code."""


def _both(first: Needs, second: Needs, header: Any, context: Context) -> Iterator[Need]:
    yield from first(header, context)
    yield from second(header, context)


def _nothing(_header: Any, _context: Context) -> Iterator[Need]:
    return iter(())


SIGNED = Needs(_nothing, of_nodes=True)
"""It says itself which node sent it."""
NODES = Needs(_nothing, of_nodes=True)
"""No client sends it, to whichever node: it comes inside of what is signed."""
KNOWN = Needs(_nothing)


def topic_need(name: str, actions: tuple[Action, ...]) -> Need:
    """What is needed for a topic that is no retry topic."""
    # Each request names its topic, and to make this takes longer than to find it.
    is_short = len(name) <= REMEMBERED_CHARACTERS
    return (_topic_need if is_short else _topic_need.__wrapped__)(name, actions)


@lru_cache(maxsize=10_000)
def _topic_need(name: str, actions: tuple[Action, ...]) -> Need:
    return Need(Resource(ResourceKind.TOPIC, name), actions)


def topic_needs(node: Node, name: str, actions: tuple[Action, ...]) -> Iterator[Need]:
    """What is needed for a topic, or for those whose messages a retry topic holds."""
    if not name.startswith(names.RETRY_PREFIX):
        yield topic_need(name, actions)
        return
    for group, topic in retry_names.readings(name, node.groups, node.offsets):
        yield group_need(group, actions)
        if topic is not None:
            yield topic_need(topic, actions)


def group_need(name: str, actions: tuple[Action, ...]) -> Need:
    """What is needed for a consumer group."""
    group = name.removeprefix(names.RETRY_PREFIX)
    return Need(Resource(ResourceKind.GROUP, group), actions)


def cluster_need(name: str, actions: tuple[Action, ...]) -> Need:
    """What is needed for the cluster."""
    return Need(Resource(ResourceKind.CLUSTER, name), actions)


def on_topic(*actions: Action, field: str = "topic") -> Needs:
    """One of the actions on the topic that a field names; without one, on all."""
    return Needs(
        lambda header, context: topic_needs(
            context.node, getattr(header, field) or ALL, actions
        )
    )


def on_group(*actions: Action, field: str = "consumer_group") -> Needs:
    """One of the actions on the group that a field names; without one, on all."""
    return Needs(
        lambda header, _: iter((group_need(getattr(header, field) or ALL, actions),))
    )


def on_topic_if_given(*actions: Action, field: str = "topic") -> Needs:
    """As `on_topic`; without one, nothing: something else is needed, too."""

    def ask(header: Any, context: Context) -> Iterator[Need]:
        if name := getattr(header, field):
            yield from topic_needs(context.node, name, actions)

    return Needs(ask)


def on_group_if_given(*actions: Action, field: str = "consumer_group") -> Needs:
    """As `on_group`; without one, nothing: something else is needed, too."""

    def ask(header: Any, _: Context) -> Iterator[Need]:
        if name := getattr(header, field):
            yield group_need(name, actions)

    return Needs(ask)


def popped_needs(
    node: Node, group: str, topic: str, actions: tuple[Action, ...]
) -> Iterator[Need]:
    """What a consumer needs that pops: its group and the topic.

    A retry topic of popping is named by group and topic, and each of the two is needed,
    besides what else the name may mean.
    """
    yield (own := group_need(group or ALL, actions))
    if not topic.startswith(names.RETRY_PREFIX):
        yield topic_need(topic or ALL, actions)
        return
    found = retry_names.readings(topic, node.groups, node.offsets)
    claimed = topic.removeprefix(f"{names.retry_topic(group)}_")
    if claimed != topic:
        yield topic_need(claimed or ALL, actions)
        if node.groups.get(found[-1].group) is None and found[-1].topic is None:
            # A group that nobody has: the name means what the client says.
            found.pop()
    for reading in found:
        if (need := group_need(reading.group, actions)) != own:
            yield need
        if reading.topic is not None:
            yield topic_need(reading.topic, actions)


def on_popped(*actions: Action) -> Needs:
    """One of the actions on the group and the topic that a pop's fields name."""
    return Needs(
        lambda header, context: popped_needs(
            context.node, header.consumer_group, header.topic, actions
        )
    )


def on_every_topic(*actions: Action) -> Needs:
    """One of the actions on all topics."""
    return Needs(lambda _, __: iter((topic_need(ALL, actions),)))


def on_every_group(*actions: Action) -> Needs:
    """One of the actions on all groups."""
    return Needs(lambda _, __: iter((group_need(ALL, actions),)))


def on_cluster(*actions: Action) -> Needs:
    """One of the actions on the cluster."""
    return Needs(
        lambda _, context: iter((cluster_need(context.node.config.cluster, actions),))
    )
