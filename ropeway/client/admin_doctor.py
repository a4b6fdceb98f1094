"""Looking a cluster over from outside: what is wrong, and what to do about it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from ropeway.client import admin_nodes
from ropeway.client.diagnosis import Reason, diagnose
from ropeway.client.errors import RemotingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ropeway.client.admin import Admin
    from ropeway.client.admin_nodes import Node

State = Literal["ok", "warning", "problem"]

CLOCK_WARNING_MS = 500
CLOCK_PROBLEM_MS = 5_000
"""Delivery times and look-ups by time are off by as much."""
LAG_WARNING_RECORDS = 1000
"""Fewer are on their way at any moment where much is sent."""
_LOOK_AGAIN_S = 1.0
_DISK_WARNING = 0.15
_DISK_PROBLEM = 0.05
"""Of the disk that is free: the log refuses to write when nothing is."""


class Check(Struct, frozen=True):
    """One thing that was looked at."""

    check: str
    """What: one of the words in docs/cli.md, for scripts."""
    state: State
    text: str
    """What was found."""
    advice: str = ""
    """What to do; nothing where it is well."""


async def examine(admin: Admin) -> list[Check]:
    """Look at every node of every broker that the name server knows."""
    try:
        found = await admin_nodes.nodes(admin)
    except RemotingError as error:
        return [await _of_failure(admin, error)]
    checks = [Check("name-server", "ok", f"it knows {len(found)} nodes")]
    if not found:
        checks.append(Check("broker", "problem", "there is no broker", "start one"))
    for node in found:
        checks += of_node(node)
    for broker in sorted({node.broker for node in found}):
        checks += of_broker([node for node in found if node.broker == broker])
    checks += _of_brokers_gone(found)
    checks += await _of_derived_stores(admin, found)
    checks += _of_versions(found)
    return checks


_UNREACHED = (
    "see whether its process runs, and whether the address that it advertises is "
    "reached from here (--listen HOST:PORT=ADVERTISED_HOST:PORT)"
)


async def _of_failure(admin: Admin, error: RemotingError) -> Check:
    found = await diagnose(error, admin.config)
    if found is None:
        advice = "start a node, or say where one is: --name-server HOST:PORT"
        return Check("name-server", "problem", str(error), advice)
    check = "name-server"
    if found.is_of_access:
        check = "access" if found.reason is Reason.NOT_ALLOWED else "tls"
    return Check(check, "problem", f"{found.address}: {found.text}", found.advice)


def of_node(node: Node) -> Iterator[Check]:
    """What there is to say of one node."""
    status = node.status
    name = f"node {node.name} of {node.broker}"
    if status is None:
        if "no node of Ropeway" in node.trouble:
            yield Check(
                "node", "warning", f"{name} {node.trouble}", "it is not looked at"
            )
            return
        yield Check(
            "node",
            "problem",
            f"{name} at {node.address}: {node.trouble}",
            node.advice or _UNREACHED,
        )
        return
    yield Check("node", "ok", f"{name} answers within {node.round_trip_ms} ms")
    yield _clock(node, name)
    if status.overdue_ms:
        yield Check(
            "log",
            "problem",
            f"{name}: its {status.log} log has not stored for {status.overdue_ms} ms",
            "see Pulsar's brokers and bookies"
            if status.log == "pulsar"
            else "see its disk: full, slow or broken",
        )
    else:
        yield Check("log", "ok", f"{name}: its {status.log} log stores")
    yield from _disk(status.log_facts, name)
    if status.routes_held:
        yield Check("routes", "ok", f"{name}: its routes ({status.routes}) are held")
    else:
        yield Check(
            "routes",
            "problem",
            f"{name}: {status.routes} has not answered it for a session's time",
            "see ZooKeeper's servers and the network to them",
        )


async def _of_derived_stores(admin: Admin, found: Sequence[Node]) -> list[Check]:
    """Look twice at those that are behind: one that catches up is well."""
    behind = any(lag >= LAG_WARNING_RECORDS for _, _, lag in _lags(found))
    if behind:
        await asyncio.sleep(_LOOK_AGAIN_S)
        again = await admin_nodes.nodes(admin)
        now = {(name, store): lag for name, store, lag in _lags(again)}
    else:
        now = {}
    return [
        of_derived_store(name, store, lag, now.get((name, store), 0))
        for name, store, lag in _lags(found)
    ]


def _lags(found: Iterable[Node]) -> Iterator[tuple[str, str, int]]:
    for node in found:
        for one in node.status.derived_stores if node.status else ():
            name = f"node {node.name} of {node.broker}"
            yield name, one.store, one.lag_records


def of_derived_store(name: str, store: str, before: int, after: int) -> Check:
    """What there is to say of a store that was behind the log, a second ago and now."""
    if after < LAG_WARNING_RECORDS:
        return Check("derived-store", "ok", f"{name}: its store of {store} is current")
    text = f"{name}: its store of {store} is {after} records behind the log"
    if after < before:
        return Check("derived-store", "ok", f"{text}, and catches up")
    return Check(
        "derived-store",
        "warning",
        f"{text}, {after - before} more than a second before",
        "see the node's log and its disk; what a store lacks is late, and not lost",
    )


def _clock(node: Node, name: str) -> Check:
    off_ms = abs(node.clock_ms)
    # Nobody knows where within the round trip the clock was read.
    certain_ms = max(0, off_ms - node.round_trip_ms // 2)
    way = "ahead of" if node.clock_ms > 0 else "behind"
    text = f"{name}: its clock is {off_ms} ms {way} this machine's"
    advice = "set both clocks by NTP (chrony)"
    if certain_ms >= CLOCK_PROBLEM_MS:
        return Check("clock", "problem", text, advice)
    if certain_ms >= CLOCK_WARNING_MS:
        return Check("clock", "warning", text, advice)
    return Check("clock", "ok", text)


def _disk(facts: dict[str, str], name: str) -> Iterator[Check]:
    total, free = facts.get("disk_bytes"), facts.get("disk_free_bytes")
    if total is None or free is None:
        return
    share = int(free) / max(int(total), 1)
    text = f"{name}: {share:.0%} of its disk is free"
    advice = "make room, or shorten log.retention_hours or log.retention_bytes"
    if share < _DISK_PROBLEM:
        yield Check("disk", "problem", text, advice)
    elif share < _DISK_WARNING:
        yield Check("disk", "warning", text, advice)
    else:
        yield Check("disk", "ok", text)


def of_broker(nodes: Sequence[Node]) -> Iterator[Check]:
    """What there is to say of one broker, by its nodes."""
    name = nodes[0].broker
    known = [node for node in nodes if node.status is not None]
    leaders = [node for node in known if node.leads]
    if known and not leaders:
        yield Check(
            "leader",
            "problem",
            f"no node leads broker {name}",
            f"its next node, {nodes[0].name}, says in its log why it cannot",
        )
    elif leaders:
        yield Check("leader", "ok", f"node {leaders[0].name} leads broker {name}")
    status = nodes[0].status
    if status is not None and status.drained:
        yield Check(
            "broker",
            "warning",
            f"broker {name} is being drained, and gets no queues",
            f"go on (ropeway broker drain {name}), or take it back "
            f"(ropeway broker undrain {name})",
        )
    if len(nodes) == 1 and status is not None and status.log == "pulsar":
        yield Check(
            "standby",
            "warning",
            f"broker {name} has one node, and none to take its place",
            "start a second node with the same broker name",
        )


def _of_brokers_gone(nodes: Sequence[Node]) -> Iterator[Check]:
    """Brokers that routes name and nobody serves: clients are not told of them."""
    running = {node.broker for node in nodes}
    gone: dict[str, int] = {}
    for node in nodes:
        if node.status is not None:
            gone |= node.status.brokers_gone
    for broker, topics in sorted(gone.items()):
        if broker not in running:
            yield Check(
                "broker",
                "problem",
                f"broker {broker} has queues of {topics} topics, and no node",
                f"start a node of it (--broker {broker}); what is stored in its queues "
                "is not consumed until then; or where it was drained: "
                f"ropeway broker remove {broker}",
            )


def _of_versions(nodes: Iterable[Node]) -> Iterator[Check]:
    versions = sorted({node.status.version for node in nodes if node.status})
    if len(versions) > 1:
        yield Check(
            "version",
            "warning",
            f"the nodes are of versions {', '.join(versions)}",
            "bring all to the newest, one after the other",
        )
    elif versions:
        yield Check("version", "ok", f"all nodes are of version {versions[0]}")
