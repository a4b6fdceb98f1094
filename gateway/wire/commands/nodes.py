"""Requests of our own about nodes: how they stand, and which of them leads."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ropeway.gateway.wire.bodies import Body
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.ROPEWAY_NODE_STATUS)
class GetNodeStatus(Header, frozen=True):
    """Ask the very node that is reached how it stands; answered by `NodeStatus`."""


class DerivedStoreStatus(Struct, frozen=True, kw_only=True):
    """How a store that is made from the log stands, on the node that leads."""

    store: str
    """Of what: `pops`, `timers` or `lite topics`."""
    lag_records: int
    """Records of the log that it has not taken in."""
    size_bytes: int
    rebuilt_ms: int
    """When it was last made again, in milliseconds since 1970; 0 where it was not."""
    rebuild_ms: int
    """How long that took."""


class NodeStatus(Body, frozen=True, kw_only=True):
    """How a node stands."""

    node: str
    """Its name among the nodes of its broker."""
    broker: str
    cluster: str
    version: str
    """Of Ropeway."""
    leads: bool
    """Whether it answers for its broker."""
    log: str
    """Where messages are: `embedded` or `pulsar`."""
    log_facts: dict[str, str]
    """More of that, for people."""
    overdue_ms: int
    """How long the oldest append has waited for the log, once that is too long."""
    routes: str
    """Where routes are: `embedded`, `file` or `zookeeper`."""
    routes_held: bool
    """Whether the route store has heard of the node within a session's time."""
    brokers_gone: dict[str, int] = msgspec.field(default_factory=dict)
    """Brokers that no node serves, and how many topics have queues on each."""
    drained: bool = False
    """Whether its broker gets no queues, because it is to leave the cluster."""
    derived_stores: list[DerivedStoreStatus] = msgspec.field(default_factory=list)
    time_ms: int
    """Its clock, in milliseconds since 1970."""
    started_ms: int


@request(RequestCode.ROPEWAY_STEP_BACK)
class StepBack(Header, frozen=True):
    """Have the very node that is reached be the last of its broker's nodes.

    If it leads, it gives that up first, and the next node takes over. It is answered
    when the routes say so. ILLEGAL_OPERATION says why no other node can lead.
    """

    successor: str | None = None
    """Refuse, if the next is not this node."""


@request(RequestCode.ROPEWAY_TOPIC_PLACES)
class GetTopicPlaces(Header, frozen=True):
    """Ask where in the log a topic's queues are; answered by `TopicPlaces`."""

    topic: str


class TopicPlaces(Body, frozen=True):
    """The partitions of a topic's queues."""

    places: dict[str, list[int]]
    """By the broker's name; a queue id indexes the list."""
