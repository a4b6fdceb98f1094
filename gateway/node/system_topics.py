"""Topics that are there from the start, on each broker its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names
from ropeway.routing.api import PERM_INHERIT, PERM_READ, PERM_WRITE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.gateway.config import Config


def system_topics(config: Config) -> Iterator[tuple[str, int, int]]:
    """What clients and the node itself expect: each topic's name, queues and perm."""
    perm = PERM_READ | PERM_WRITE
    yield names.SCHEDULE_TOPIC, len(config.delay_levels.split()), perm
    yield names.reply_topic(config.cluster), 1, perm
    yield names.TIMER_TOPIC, 1, perm
    # Admin clients ask for routes of topics named like the cluster and the broker,
    # before they create others.
    perm |= PERM_INHERIT
    yield config.cluster, 1, perm
    yield config.broker, 1, perm
    if config.auto_create:
        yield names.AUTO_CREATE_TOPIC, config.topics.default_queues, perm
