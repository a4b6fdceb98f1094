"""Metrics of the node itself: its role, its requests, what waits in it."""

from __future__ import annotations

import asyncio
import platform
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway import __version__
from ropeway.gateway.node import names
from ropeway.gateway.node.latencies import BOUNDS_S
from ropeway.gateway.wire import host_port
from ropeway.gateway.wire.codes import RequestCode
from ropeway.routing.api import PERM_READ, PERM_WRITE
from ropeway.storage import directories

if TYPE_CHECKING:
    from ropeway.gateway.http.metrics.text import Page
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.server import Server


def write(page: Page, node: Node, node_name: str, server: Server) -> None:
    """Add them to a page."""
    page.add(
        "ropeway_build_info",
        1,
        version=__version__,
        python=platform.python_version(),
    )
    page.add("ropeway_leader", int(node.leadership.leads), node=node_name)
    page.add("ropeway_brokers", len(node.routes.brokers))
    page.add("ropeway_tasks", len(asyncio.all_tasks()))
    _write_requests(page, node, server)
    _write_quotas(page, node)
    page.add("ropeway_balance_measurements_total", node.balance.measured)
    page.add("ropeway_balance_failures_total", node.balance.failed)
    page.add("ropeway_balance_moves_total", node.balance.moves)
    for kind, (wanted, left_out) in node.audit.counts.items():
        page.add("ropeway_audit_lines_total", wanted, kind=kind)
        page.add("ropeway_audit_lines_left_out_total", left_out, kind=kind)
    page.add("ropeway_audit_lines_unwritten_total", node.audit.unwritten)
    page.add("ropeway_log_overdue_seconds", node.log.overdue_ms() / 1000)
    page.add("ropeway_log_misfits_total", node.log.misfits)
    if node.config.log_name == "embedded":
        page.add(
            "rocketmq_storage_size",
            directories.size_bytes(node.config.data / "log"),
            storage_type="local",
            storage_medium="disk",
        )
    if node.leadership.leads:
        page.add("rocketmq_broker_permission", PERM_READ | PERM_WRITE)
        page.add("rocketmq_consumer_group_number", len(node.routes.groups))
        page.add("rocketmq_half_messages", len(node.transactions))
        _write_timer(page, node)
        _write_derived_stores(page, node)


def _write_requests(page: Page, node: Node, server: Server) -> None:
    waiting, waiting_bytes = server.waiting
    page.add("ropeway_requests_waiting", waiting)
    page.add("ropeway_requests_waiting_bytes", waiting_bytes)
    page.add("ropeway_long_polls_held", len(node.pull_hold))
    page.add("ropeway_requests_forwarded_total", node.forwarder.forwarded)
    page.add("ropeway_requests_forward_failures_total", node.forwarder.failed)
    for listener in server.listeners:
        page.add(
            "ropeway_connections",
            len(listener.connections),
            listener=host_port.join(listener.host, listener.port),
        )
    for code, sample in sorted(node.latencies.by_code().items()):
        page.add_histogram(
            "ropeway_request_latency_seconds",
            BOUNDS_S,
            sample.counts,
            sample.sum_s,
            code=str(code),
            request=_name(code),
        )


def _write_quotas(page: Page, node: Node) -> None:
    for (kind, name), quota in sorted(node.quotas.kept.items()):
        for limit, value in msgspec.structs.asdict(quota).items():
            if value:
                page.add(
                    "ropeway_quota_limit", value, kind=kind, resource=name, limit=limit
                )
    for (kind, name), counts in sorted(node.quotas.throttled().items()):
        for what, count in counts.items():
            page.add(
                "ropeway_quota_throttled_total",
                count,
                kind=kind,
                resource=name,
                what=what,
            )


def _write_timer(page: Page, node: Node) -> None:
    topic = node.topics.get(names.TIMER_TOPIC)
    if topic is not None:
        read_to = node.timer.read_to
        page.add("ropeway_timer_unread_messages", topic.partitions[0].end - read_to)


def _write_derived_stores(page: Page, node: Node) -> None:
    name = "ropeway_derived_store"
    for one in node.derived_stores():
        rebuilt_s, took_s = one.rebuilt_ms / 1000, one.rebuild_ms / 1000
        page.add(f"{name}_lag_records", one.lag_records, store=one.store)
        page.add(f"{name}_size_bytes", one.size_bytes, store=one.store)
        page.add(f"{name}_rebuilt_timestamp_seconds", rebuilt_s, store=one.store)
        page.add(f"{name}_rebuild_seconds", took_s, store=one.store)


def _name(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return "unknown"
