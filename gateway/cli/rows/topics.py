"""Topics, their queues, and where these are."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from ropeway.gateway.cli.rows import Row


class TopicRow(Row, frozen=True):
    """A topic in a list; with lag, or sizes, where these are asked for."""

    topic: str
    lag: int | UnsetType = UNSET
    queues: int | UnsetType = UNSET
    messages: int | UnsetType = UNSET
    approx_bytes: int | UnsetType | None = UNSET
    in_per_s: float | UnsetType = UNSET
    in_bytes_per_s: float | UnsetType = UNSET
    in_last_hour: int | UnsetType = UNSET
    newest: str | UnsetType = UNSET


class QueueSpan(Row, frozen=True):
    """What a queue holds."""

    broker: str
    queue_id: int
    begin: int
    end: int
    messages: int
    newest: str


class TopicStats(Row, frozen=True):
    """What a topic holds, and how much is sent to it."""

    topic: str
    messages: int
    approx_bytes: int | None
    in_per_s: float
    in_bytes_per_s: float
    in_last_hour: int
    in_last_day: int
    queues: list[QueueSpan]


class BrokerTopic(Row, frozen=True):
    """How a topic is set up on a broker."""

    topic: str
    broker: str
    read_queues: int
    write_queues: int
    perm: int
    order: bool
    attributes: dict[str, str]


class TopicShown(Row, frozen=True):
    """How a topic is set up, and the names of its groups."""

    topic: str
    brokers: list[BrokerTopic]
    groups: list[str]


class GroupLag(Row, frozen=True):
    """The lag of a group in a topic."""

    group: str
    lag: int
    approx_lag_bytes: int | None


class TopicDescription(TopicStats, frozen=True):
    """All about a topic."""

    brokers: list[BrokerTopic]
    groups: list[GroupLag]


class TrimmedQueue(Row, frozen=True):
    """The oldest offset of a queue, before and after it was trimmed."""

    topic: str
    broker: str
    queue_id: int
    before: int
    after: int
    trimmed: int


class CompactedQueue(Row, frozen=True):
    """How far compaction of a queue is."""

    broker: str
    queue_id: int
    clean_end: int
    end: int
    messages: int
    bytes: int
    problem: str


class TopicPlace(Row, frozen=True):
    """The queues of a topic on a broker."""

    topic: str
    broker: str
    master: str
    read_queues: int
    write_queues: int
    partitions: list[int]


class MovedQueue(Row, frozen=True):
    """A queue that moves to another broker; the rates are those of `--by-load`."""

    topic: str
    partition: int
    from_: str = field(name="from")
    to: str
    took_ms: int | None
    queue_per_s: float | UnsetType = UNSET
    from_per_s: float | UnsetType = UNSET
    to_per_s: float | UnsetType = UNSET
    average_per_s: float | UnsetType = UNSET
