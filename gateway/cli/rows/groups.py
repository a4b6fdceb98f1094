"""Consumer groups, their members and their offsets."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ropeway.gateway.cli.rows import Row


class GroupRow(Row, frozen=True):
    """A group in a list; with its lag, or sizes, where these are asked for."""

    group: str
    lag: int | UnsetType = UNSET
    approx_lag_bytes: int | UnsetType | None = UNSET
    queues: int | UnsetType = UNSET
    topics: int | UnsetType = UNSET
    members: int | UnsetType = UNSET
    out_per_s: float | UnsetType = UNSET
    out_last_hour: int | UnsetType = UNSET
    done_until: str | UnsetType = UNSET


class GroupQueue(Row, frozen=True):
    """How far a group is in a queue."""

    topic: str
    broker: str
    queue_id: int
    committed: int
    end: int
    lag: int


class GroupOffset(GroupQueue, frozen=True):
    """Likewise, with what it has pulled, and the time of the last message it did."""

    pulled: int
    done_until: str


class OffsetMove(Row, frozen=True):
    """Where a group was in a queue, and where it goes on."""

    topic: str
    broker: str
    queue_id: int
    before: int
    after: int


class GroupSettings(Row, frozen=True):
    """How a group is set up, as the options of `ropeway group create` name it."""

    consume: bool
    broadcast: bool
    in_order: bool
    retries: int
    retry_queues: int
    read_at: str


class GroupShown(Row, frozen=True):
    """A group's settings, its lag and its consumers."""

    group: str
    lag: int
    dead_letters: int
    consumers: list[str]
    queues: list[GroupQueue]
    settings: GroupSettings


class Member(Row, frozen=True):
    """A client that consumes in a group."""

    client_id: str
    address: str
    language: str
    version: str


class Subscription(Row, frozen=True):
    """What a group wants of a topic."""

    topic: str
    type: str | None
    filter: str


class GroupMembers(Row, frozen=True):
    """Who consumes in a group, and what."""

    model: str
    members: list[Member]
    subscriptions: list[Subscription]


class GroupDescription(GroupShown, frozen=True):
    """All about a group."""

    model: str
    members: list[Member]
    subscriptions: list[Subscription]
