"""What loads measured, and what is busy."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ropeway.gateway.cli.rows import Row
from ropeway.gateway.cli.rows.groups import GroupRow
from ropeway.gateway.cli.rows.topics import TopicRow


class Measured(Row, frozen=True):
    """What a load measured; latencies in milliseconds."""

    topic: str
    messages: int
    failed: int
    bytes: int
    seconds: float
    messages_per_s: float
    mib_per_s: float
    clients: int
    mean_ms: float
    min_ms: float
    p50_ms: float
    p99_ms: float
    p99_9_ms: float
    max_ms: float
    in_flight: int | UnsetType = UNSET


class ClientLoad(Row, frozen=True):
    """What a consumer reads; null is what it does not say."""

    client_id: str
    group: str
    language: str
    queues: int | None
    lag: int | None
    out_per_s: float | None


class Busiest(Row, frozen=True):
    """The busiest topics, groups or clients."""

    topics: list[TopicRow] | UnsetType = UNSET
    groups: list[GroupRow] | UnsetType = UNSET
    clients: list[ClientLoad] | UnsetType = UNSET
