"""Brokers, their nodes, and what these say of themselves."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from ropeway.gateway.cli.rows import Row
from ropeway.gateway.cli.rows.topics import MovedQueue


class ClusterRow(Row, frozen=True):
    """A broker at a glance."""

    cluster: str
    broker: str
    master: str
    nodes: int
    version: str
    in_per_s: float
    out_per_s: float
    in_today: int
    out_today: int


class NodeRow(Row, frozen=True):
    """A node of a broker."""

    cluster: str
    broker: str
    rank: int
    node: str
    address: str
    role: str
    version: str
    state: str


class NodeFacts(NodeRow, frozen=True):
    """All that a node says; what one that does not answer would say is left out."""

    started: str | UnsetType = UNSET
    log: str | UnsetType = UNSET
    routes: str | UnsetType = UNSET
    routes_held: bool | UnsetType = UNSET
    overdue_ms: int | UnsetType = UNSET
    clock_ms: int | UnsetType = UNSET
    round_trip_ms: int | UnsetType = UNSET
    runtime: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] | UnsetType = UNSET


class BrokerShown(Row, frozen=True):
    """The nodes of a broker."""

    broker: str
    nodes: list[NodeFacts]


class BrokerDescription(Row, frozen=True):
    """All about a broker; null is what RocketMQ's own does not say."""

    broker: str
    cluster: str
    master: str
    in_per_s: float
    out_per_s: float
    in_today: int
    out_today: int
    topics: int | None
    producers: int
    nodes: list[NodeFacts]


class BrokerRoute(Row, frozen=True):
    """The nodes of a broker, in the order in which they take over."""

    cluster: str
    broker: str
    master: str
    slaves: list[str]


class HandOverRow(Row, frozen=True):
    """A broker that another node leads now."""

    broker: str
    before: str
    master: str
    took_ms: int


class NodeDrained(Row, frozen=True):
    """A node that leads no broker any more."""

    node: str
    moved: list[HandOverRow]


class DrainPlan(Row, frozen=True):
    """What is on a broker that is to be drained."""

    draining: bool
    queues: dict[str, int]
    waiting: dict[str, int]
    stuck: dict[str, str]


class BrokerDrained(Row, frozen=True):
    """What has moved away from a broker, and what is left on it."""

    broker: str
    moved: list[MovedQueue]
    left: dict[str, int]


class BrokerRemovedRow(Row, frozen=True):
    """What was forgotten with a broker."""

    broker: str
    deletions: int
    own_topics: int
    left: dict[str, int]


class LogRow(Row, frozen=True):
    """The log of a node."""

    broker: str
    node: str
    log: str
    state: str
    overdue_ms: int
    facts: dict[str, str]


class MetricRow(Row, frozen=True):
    """A metric, with its value at each worker."""

    metric: str
    labels: dict[str, str]
    values: dict[str, int | float]
