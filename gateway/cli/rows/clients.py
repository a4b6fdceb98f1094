"""Connected clients."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from ropeway.gateway.cli.rows import Row
from ropeway.gateway.cli.rows.groups import Subscription


class ClientRow(Row, frozen=True):
    """A client in one of its groups."""

    client_id: str
    role: str
    group: str
    address: str
    language: str
    version: str


class ClientQueue(Row, frozen=True):
    """A queue that a consumer reads."""

    topic: str
    broker: str
    queue_id: int
    committed: int
    cached: int


class ClientTopic(Row, frozen=True):
    """What a consumer did of a topic in the last minute."""

    topic: str
    pulled_per_s: float
    done_per_s: float
    failed_per_s: float
    consume_ms: float


class ClientMembership(Row, frozen=True):
    """A client in one of its groups; null is what it does not say."""

    group: str
    role: str
    model: str | UnsetType = UNSET
    subscriptions: list[Subscription] | UnsetType = UNSET
    reads: list[ClientQueue] | UnsetType | None = UNSET
    topics: list[ClientTopic] | UnsetType | None = UNSET
    answers: bool | UnsetType = UNSET
    """Whether a consumer answered when it was asked what it reads."""


class ClientDescription(Row, frozen=True):
    """All about a client."""

    client_id: str
    address: str
    language: str
    version: str
    memberships: list[ClientMembership]
    stack: str | UnsetType | None = UNSET
