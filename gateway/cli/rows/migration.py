"""What `ropeway migrate plan` found at a source, and what it would create."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ropeway.client.admin_doctor import Check
from ropeway.gateway.cli.rows import Row
from ropeway.gateway.cli.rows.access import PolicyRow, UserRow
from ropeway.gateway.cli.rows.clients import ClientRow
from ropeway.gateway.cli.rows.groups import GroupOffset, GroupSettings
from ropeway.gateway.cli.rows.topics import BrokerTopic, QueueSpan


class SourceBroker(Row, frozen=True):
    """A broker of the source; what it does not tell is left out."""

    broker: str
    cluster: str
    address: str
    version: str
    clock_ms: int | UnsetType = UNSET
    bytes: int | UnsetType = UNSET


class PlannedTopic(Row, frozen=True):
    """A topic of the source, and whether it moves."""

    topic: str
    moves: bool
    messages: int
    groups: list[str]
    brokers: list[BrokerTopic]
    queues: list[QueueSpan]


class PlannedGroup(Row, frozen=True):
    """A group of the source, and whether it moves."""

    group: str
    moves: bool
    model: str
    lag: int
    consumers: list[str]
    settings: GroupSettings
    queues: list[GroupOffset]


class TopicSet(Row, frozen=True):
    """Topics that belong together, and the groups that read them."""

    topics: list[str]
    groups: list[str]


class UnderWay(Row, frozen=True):
    """Messages of a kind that a broker holds and has delivered to nobody."""

    broker: str
    kind: str
    messages: int
    at_most: bool
    topics: dict[str, int]


class MigrationPlan(Row, frozen=True):
    """All that a source tells, and what a migration would make of it."""

    brokers: list[SourceBroker]
    topics: list[PlannedTopic]
    groups: list[PlannedGroup]
    clients: list[ClientRow]
    users: list[UserRow]
    user_policies: list[PolicyRow]
    sets: list[TopicSet]
    under_way: list[UnderWay]
    checks: list[Check]
    untold: list[str]


class MirroredQueue(Row, frozen=True):
    """How far a queue of a topic is mirrored."""

    topic: str
    queue_id: int
    messages: int
    """Copied by this command."""
    next_offset: int


class MigratedTopic(Row, frozen=True):
    """A topic that clients use here from now on."""

    topic: str
    took_ms: int | None
    paused_ms: int | None
    """How long producers waited, where several topics moved the longest; 0 where that
    had happened before."""


class TopicStanding(Row, frozen=True):
    """Where a topic of a migration's source stands."""

    topic: str
    stage: str
    """at_source, mirrored, passed_on or stored while it is cut over, moved,
    sent_back while it is rolled back, returned, finished."""
    to_copy: int | None
    """Messages that are not mirrored yet; null where there is no mirror."""
    behind_s: float | None
    """How old the oldest of these is."""
    per_s: float | None
    """How many are copied a second."""
    left_s: float | None
    """How long the rest takes at that rate; null where it does not get less."""
    next: str
    """The command that goes on, or why none can."""


class RolledBackTopic(Row, frozen=True):
    """A topic that clients use at the source again."""

    topic: str
    sent: int
    """Messages that this command sent there."""
    waits: int
    """Messages that are not due here yet."""
    took_ms: int | None
    paused_ms: int | None
    """How long producers waited, as of `MigratedTopic`."""


class TranslatedOffset(Row, frozen=True):
    """Where a group goes on in a queue at the source, and where it did here."""

    group: str
    topic: str
    queue_id: int
    at_target: int
    at_source: int


class RolledBack(Row, frozen=True):
    """Topics that went back to the source, and their groups' offsets."""

    topics: list[RolledBackTopic]
    translated: list[TranslatedOffset]


class FinishedTopic(Row, frozen=True):
    """A topic whose migration ends, and what of it is at the source alone."""

    topic: str
    finished: bool
    brought: int
    """Late messages that were sent here."""
    late: int
    """Others, which came to the source after the cut-over."""
    delayed: int
    timed: int
    half: int
    """At most."""
    retry: int
    unread: int


class VerifiedQueue(Row, frozen=True):
    """How a queue of a mirror is beside the source's, message by message."""

    topic: str
    queue_id: int
    equal: int
    missing: int
    extra: int
    differing: int
    first_differing: int | None
    field: str | None


class VerifiedOffset(Row, frozen=True):
    """Where a group goes on in a queue, at the source and in the mirror."""

    group: str
    topic: str
    queue_id: int
    at_source: int
    at_target: int


class VerifiedMirror(Row, frozen=True):
    """Mirrors of topics beside their source."""

    queues: list[VerifiedQueue]
    offsets: list[VerifiedOffset]
