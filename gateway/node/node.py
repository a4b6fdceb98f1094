"""The node: its parts in one place, as processors see them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ropeway.common.clock import now_ms

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from ropeway.acl.api import Guard
    from ropeway.acl.audit_api import Auditor
    from ropeway.common.tasks import Tasks
    from ropeway.gateway.config import Config
    from ropeway.gateway.lite.service import Lite
    from ropeway.gateway.node.balance import Balance
    from ropeway.gateway.node.batches import Batches
    from ropeway.gateway.node.calls import Calls
    from ropeway.gateway.node.clients import Clients
    from ropeway.gateway.node.creations import Creations
    from ropeway.gateway.node.delays import Delays
    from ropeway.gateway.node.drains import Drains
    from ropeway.gateway.node.fair_queueing import FairQueue
    from ropeway.gateway.node.forwarder import Forwarder
    from ropeway.gateway.node.groups import Groups
    from ropeway.gateway.node.latencies import Latencies
    from ropeway.gateway.node.leadership import Leadership
    from ropeway.gateway.node.locks import QueueLocks
    from ropeway.gateway.node.long_polling import LongPolling
    from ropeway.gateway.node.moves import Moves
    from ropeway.gateway.node.pending_sends import PendingSends
    from ropeway.gateway.node.quotas import Quotas
    from ropeway.gateway.node.reauthorization import Reauthorization
    from ropeway.gateway.node.reply_to import ReplyAddresses
    from ropeway.gateway.node.resets import Resets
    from ropeway.gateway.node.schedule import Schedule
    from ropeway.gateway.node.source_routes import SourceRoutes
    from ropeway.gateway.node.timer.timer import Timer
    from ropeway.gateway.node.topics import Topics
    from ropeway.gateway.node.traffic import PulledOffsets, Traffic
    from ropeway.gateway.node.transactions import Transactions
    from ropeway.gateway.node.unique_keys import UniqueKeys
    from ropeway.gateway.pop.service import Pop
    from ropeway.gateway.tracing.spans import Spans
    from ropeway.gateway.wire.commands.nodes import DerivedStoreStatus
    from ropeway.routing.api import RouteStore
    from ropeway.storage.api import Log, Partition
    from ropeway.storage.compaction_api import Compaction
    from ropeway.storage.offsets import Offsets


_BOOTED_MS = now_ms() - time.monotonic_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds since 1970 as they were at the start, and run on from there.

    What waits for a duration goes by it: setting the clock neither ends nor prolongs
    a lock, an invisible time, or the time within which a client is to be heard.
    """
    return _BOOTED_MS + time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """One process' brokers: what it stores, knows and serves."""

    config: Config
    processors: Mapping[int, Callable[[Any, Any], Any]]
    """What works on requests, by their code: the registry's, or traced ones."""
    spans: Spans | None
    """What is recorded for traces; None where nothing is."""
    leadership: Leadership
    forwarder: Forwarder
    guard: Guard | None
    """Who may do what; None where everybody may do everything."""
    audit: Auditor
    """Who changed what; and what was refused, where there is a guard."""
    reauthorization: Reauthorization
    reply_to: ReplyAddresses | None
    """Signs who waits for replies; None where nobody is refused."""
    log: Log
    compaction: Compaction
    offsets: Offsets
    routes: RouteStore
    source: SourceRoutes | None
    """Of a migration; None where there is none."""
    topics: Topics
    groups: Groups
    clients: Clients
    creations: Creations
    calls: Calls
    locks: QueueLocks
    moves: Moves
    balance: Balance
    drains: Drains
    pull_hold: LongPolling[Partition]
    pending_sends: PendingSends
    resets: Resets
    pulled: PulledOffsets
    schedule: Schedule
    delays: Delays
    traffic: Traffic
    quotas: Quotas
    timer: Timer
    transactions: Transactions
    pop: Pop
    lite: Lite
    batches: Batches
    unique_keys: UniqueKeys
    fair_queue: FairQueue
    """Whose requests are begun, and whose long work goes on."""
    latencies: Latencies
    our_name: bytes
    """How the headers of plain sends say that they mean our broker."""
    property_suffix: str
    """What this broker adds to the properties of every message that is sent to it."""
    region_json: bytes
    """The region as a JSON string, for answers that are made from a template."""
    tasks: Tasks
    """Requests that wait."""
    disk_reads: asyncio.Semaphore
    """Bounds the memory of pulls that read from the disk at the same time."""
    started_ms: int

    def derived_stores(self) -> list[DerivedStoreStatus]:
        """How what is made from the log stands; nothing where the node only follows."""
        if not self.leadership.leads:
            return []
        parts = (self.pop.ledger, self.timer, self.lite)
        return [part.status() for part in parts]
