"""Metrics of groups and clients: how far they are, and who is connected."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from ropeway.gateway.http.metrics.of_topics import QUEUES_AT_ONCE
from ropeway.gateway.http.metrics.text import escape
from ropeway.gateway.node import names
from ropeway.gateway.wire import bodies
from ropeway.storage.api import LogError, NotReadyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.http.metrics.text import Page
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.storage.api import Partition


async def write(page: Page, node: Node) -> None:
    """Add them to a page."""
    await _write_progress(page, node)
    for topic, group, count in node.traffic.given():
        _add(page, "rocketmq_messages_out_total", group, topic, count)
    _write_clients(page, node)


async def _write_progress(page: Page, node: Node) -> None:
    looked_at = 0
    for group in list(node.offsets.groups()):
        if not names.is_listed_group(group):
            continue
        for name in node.offsets.topics(group):
            topic = node.topics.get(name)
            if topic is None:
                continue
            try:
                _write_lag(page, node, group, topic)
            except LogError:
                # Another node leads, and knows.
                continue
            looked_at += len(topic.partitions)
            if looked_at >= QUEUES_AT_ONCE:
                looked_at = 0
                await asyncio.sleep(0)


def _first(partition: Partition) -> int:
    """The oldest offset; 0 where it is not known yet, over a network."""
    try:
        return partition.first
    except NotReadyError:
        return 0


def lags_of(node: Node, group: str, topic: ServedTopic) -> list[int]:
    """How many messages a group has left in each queue of a topic.

    Raises:
        LogError: Another node leads, and knows.
    """
    return [lag for _, lag, _ in _progress(node, group, topic)]


def _progress(
    node: Node, group: str, topic: ServedTopic
) -> Iterator[tuple[int, int, int]]:
    """Each queue with a group's lag, and the next offset that it has not done."""
    done = node.offsets.queues(group, topic.name)
    for queue_id in range(topic.setup.read_queue_nums):
        partition = topic.partitions[queue_id]
        end = partition.last_end
        offset = max(done.get(queue_id, 0), _first(partition))
        yield queue_id, max(end - offset, 0), offset


def _write_lag(page: Page, node: Node, group: str, topic: ServedTopic) -> None:
    name = topic.name
    lags = []
    in_flight = 0
    for queue_id, lag, offset in _progress(node, group, topic):
        lags.append(lag)
        in_flight += max(node.pulled.get(group, name, queue_id) - offset, 0)
    _add(page, "rocketmq_consumer_lag_messages", group, name, sum(lags))
    _add(page, "rocketmq_consumer_inflight_messages", group, name, in_flight)
    largest = max(lags, default=0)
    _add(page, "ropeway_consumer_lag_queue_max_messages", group, name, largest)


def _add(page: Page, family: str, group: str, topic: str, value: int) -> None:
    retry = str(topic.startswith(names.RETRY_PREFIX)).lower()
    system = group.startswith(names.SYSTEM_GROUP_PREFIX) or names.is_system_topic(topic)
    page.lines(family).append(
        f'{family}{{{page.common},consumer_group="{escape(group)}",'
        f'topic="{escape(topic)}",is_retry="{retry}",'
        f'is_system="{str(system).lower()}"}} {value}'
    )


def _write_clients(page: Page, node: Node) -> None:
    producers = Counter(
        (member.language.lower(), str(member.version))
        for group in node.clients.producer_groups()
        for member in node.clients.producers(group)
    )
    for (language, version), count in producers.items():
        page.add(
            "rocketmq_producer_connections", count, language=language, version=version
        )
    for group in node.clients.consumer_groups():
        kind = bodies.named(group.data.consume_type, bodies.TYPES)
        consumers = Counter(
            (member.language.lower(), str(member.version))
            for member in group.members.values()
        )
        for (language, version), count in consumers.items():
            page.add(
                "rocketmq_consumer_connections",
                count,
                consumer_group=group.name,
                language=language,
                version=version,
                consume_mode=bodies.TYPE_WORDS.get(kind or "", "unknown"),
            )
