"""A broker by its master: version, clock, and how much it stores."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from ropeway.client import admin_nodes

if TYPE_CHECKING:
    from ropeway.client.admin import Admin
    from ropeway.client.admin_nodes import Node

_RUNTIME = re.compile(r"(\d+) days, (\d+) hours, (\d+) minutes, (\d+) seconds").search
_SECOND_MS = 1000


class BrokerFacts(Struct, frozen=True, kw_only=True):
    """A broker, by its master."""

    broker: str
    cluster: str
    address: str
    version: str
    """As it says itself."""
    clock_ms: int | None
    """How far its clock is ahead of ours; None where it does not tell."""
    clock_within_ms: int
    """How far that may be off."""
    stored_bytes: int | None
    """All messages of all topics; None where it does not tell."""
    free_bytes: int | None = None
    """Of the disk; None where it does not tell exactly."""
    is_ropeway: bool


async def read(admin: Admin, node: Node) -> BrokerFacts:
    """Ask the master of a broker.

    Args:
        admin: Asks.
        node: As `admin_nodes.nodes` has it.

    Raises:
        RemotingError: It cannot be reached, or refused.
    """
    asked_ms = time.time_ns() // 1_000_000
    facts = await admin_nodes.runtime(admin, node.address)
    trip_ms = time.time_ns() // 1_000_000 - asked_ms
    clock_ms: int | None = node.clock_ms
    within_ms = node.round_trip_ms // 2
    if node.status is None:
        clock_ms, within_ms = None, (_SECOND_MS + trip_ms) // 2
        if (told_ms := now_ms(facts)) is not None:
            # They count whole seconds.
            clock_ms = told_ms + _SECOND_MS // 2 - (asked_ms + trip_ms // 2)
    return BrokerFacts(
        broker=node.broker,
        cluster=node.cluster,
        address=node.address,
        version=facts.get("brokerVersionDesc", ""),
        clock_ms=clock_ms,
        clock_within_ms=within_ms,
        stored_bytes=stored_bytes(facts),
        free_bytes=_free_bytes(node),
        is_ropeway=node.status is not None,
    )


def now_ms(facts: dict[str, str]) -> int | None:
    """What time a broker has: when it started, and how long it has run."""
    started, runtime = facts.get("bootTimestamp"), _RUNTIME(facts.get("runtime", ""))
    if started is None or runtime is None or not started.isdecimal():
        return None
    days, hours, minutes, seconds = map(int, runtime.groups())
    return int(started) + _SECOND_MS * (
        ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    )


def stored_bytes(facts: dict[str, str]) -> int | None:
    """How large its messages are; None where it does not tell."""
    first, end = facts.get("commitLogMinOffset"), facts.get("commitLogMaxOffset")
    if first is None or end is None:
        return None
    return max(0, int(end) - int(first))


def _free_bytes(node: Node) -> int | None:
    free = node.status.log_facts.get("disk_free_bytes") if node.status else None
    return None if free is None else int(free)
