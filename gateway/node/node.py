"""The node: its parts in one place, as processors see them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from gateway.config import Config
    from gateway.node.clients import Clients
    from gateway.node.forwarder import Forwarder
    from gateway.node.groups import Groups
    from gateway.node.holds import Holds
    from gateway.node.leadership import Leadership
    from gateway.node.locks import QueueLocks
    from gateway.node.schedule import Schedule
    from gateway.node.topics import Topics
    from gateway.node.unique_keys import UniqueKeys
    from routing.api import RouteStore
    from storage.api import Log
    from storage.offsets import Offsets


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """One process' brokers: what it stores, knows and serves."""

    config: Config
    leadership: Leadership
    forwarder: Forwarder
    log: Log
    offsets: Offsets
    routes: RouteStore
    topics: Topics
    groups: Groups
    clients: Clients
    locks: QueueLocks
    holds: Holds
    schedule: Schedule
    unique_keys: UniqueKeys
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
