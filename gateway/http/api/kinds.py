"""What topics are for, by their names."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ropeway.gateway.node import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.node.node import Node


class Kind(Enum):
    """What a topic is for."""

    NORMAL = "normal"
    RETRY = "retry"
    DEAD_LETTERS = "dead-letters"
    SYSTEM = "system"


ALL = "all"
CHOICES = (*(kind.value for kind in Kind), ALL)
"""What lists can be asked for."""


def kinds(node: Node) -> Callable[[str], Kind]:
    """What tells the kind of a topic from its name, for one look at many."""
    cluster = node.config.cluster
    # Clients ask for topics that are named like these.
    named_like = {cluster, names.reply_topic(cluster), *node.routes.brokers}

    def kind_of(name: str) -> Kind:
        if name.startswith(names.RETRY_PREFIX):
            return Kind.RETRY
        if name.startswith(names.DLQ_PREFIX):
            return Kind.DEAD_LETTERS
        if name in named_like or names.is_system_topic(name):
            return Kind.SYSTEM
        return Kind.NORMAL

    return kind_of
