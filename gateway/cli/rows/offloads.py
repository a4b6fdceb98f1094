"""What Pulsar has offloaded by itself."""

from __future__ import annotations

from ropeway.gateway.cli.rows import Row


class OffloadPolicy(Row, frozen=True):
    """When Pulsar offloads of a namespace."""

    namespace: str
    driver: str | None
    threshold_bytes: int
    threshold_s: int


class Offload(Row, frozen=True):
    """How far the offload of a partition is."""

    topic: str
    partition: int
    ledgers: int
    offloaded: int
    bytes: int
    offloaded_bytes: int
    status: str
    error: str


class Offloads(Row, frozen=True):
    """When Pulsar offloads, and how far it is."""

    policies: list[OffloadPolicy]
    partitions: list[Offload]
