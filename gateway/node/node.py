"""The node: its parts in one place, as processors see them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from acl.api import Guard
    from acl.auditing import Auditor
    from gateway.config import Config
    from gateway.lite.service import Lite
    from gateway.node.balance import Balance
    from gateway.node.batches import Batches
    from gateway.node.calls import Calls
    from gateway.node.clients import Clients
    from gateway.node.creations import Creations
    from gateway.node.delays import Delays
    from gateway.node.drains import Drains
    from gateway.node.forwarder import Forwarder
    from gateway.node.groups import Groups
    from gateway.node.latencies import Latencies
    from gateway.node.leadership import Leadership
    from gateway.node.locks import QueueLocks
    from gateway.node.long_polling import LongPolling
    from gateway.node.moves import Moves
    from gateway.node.pending_sends import PendingSends
    from gateway.node.pulled import Pulled
    from gateway.node.quotas import Quotas
    from gateway.node.reauthorization import Reauthorization
    from gateway.node.reply_to import ReplyAddresses
    from gateway.node.resets import Resets
    from gateway.node.schedule import Schedule
    from gateway.node.timer.timer import Timer
    from gateway.node.topics import Topics
    from gateway.node.traffic import Traffic
    from gateway.node.transactions import Transactions
    from gateway.node.turns import Turns
    from gateway.node.unique_keys import UniqueKeys
    from gateway.pop.service import Pop
    from routing.api import RouteStore
    from storage.api import Log, Partition
    from storage.compacting import Compaction
    from storage.offsets import Offsets


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


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
    topics: Topics
    groups: Groups
    clients: Clients
    creations: Creations
    calls: Calls
    locks: QueueLocks
    moves: Moves
    balance: Balance
    drains: Drains
    holds: LongPolling[Partition]
    pending_sends: PendingSends
    resets: Resets
    pulled: Pulled
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
    turns: Turns
    """Whose requests are begun, and whose long work goes on."""
    latencies: Latencies
    our_name: bytes
    """How the headers of plain sends say that they mean our broker."""
    property_suffix: str
    """What this broker adds to the properties of every message that is sent to it."""
    region_json: bytes
    """The region as a JSON string, for answers that are made from a template."""
    tasks: set[asyncio.Task[None]]
    """Requests that wait; kept, so that none is collected half-way."""
    disk_reads: asyncio.Semaphore
    """Bounds the memory of pulls that read from the disk at the same time."""
    started_ms: int

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Run a request that has to wait."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
