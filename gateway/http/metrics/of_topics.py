"""Metrics of topics and their queues: what is stored."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ropeway.gateway.http.metrics.text import escape
from ropeway.gateway.node import names
from ropeway.storage.api import LogError, NotReadyError

if TYPE_CHECKING:
    from ropeway.gateway.http.metrics.text import Page
    from ropeway.gateway.node.node import Node

QUEUES_AT_ONCE = 2000
"""Queues that are looked at before requests of clients get a turn: 2 ms or so."""


async def write(page: Page, node: Node) -> None:
    """Add them to a page; topics that another node leads may be left out."""
    stored = page.lines("rocketmq_messages_in_total")
    firsts = page.lines("ropeway_queue_first_offset")
    ends = page.lines("ropeway_queue_end_offset")
    topics = list(node.topics)
    page.add("rocketmq_topic_number", len(topics))
    looked_at = 0
    for topic in topics:
        labels = f'{{{page.common},topic="{escape(topic.name)}",'
        before, begun, total = len(ends), len(firsts), 0
        try:
            for queue_id, partition in enumerate(topic.partitions):
                end = partition.last_end
                queue = f'{labels}queue_id="{queue_id}"}}'
                with suppress(NotReadyError):
                    first = partition.first
                    firsts.append(f"ropeway_queue_first_offset{queue} {first}")
                ends.append(f"ropeway_queue_end_offset{queue} {end}")
                total += end
        except LogError:
            del firsts[begun:], ends[before:]
            continue
        system = "true" if names.is_system_topic(topic.name) else "false"
        stored.append(
            f'rocketmq_messages_in_total{labels}is_system="{system}"}} {total}'
        )
        looked_at += len(topic.partitions)
        if looked_at >= QUEUES_AT_ONCE:
            looked_at = 0
            await asyncio.sleep(0)
