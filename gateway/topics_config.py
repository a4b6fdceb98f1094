"""How topics and groups come to be, as the configuration says."""

from __future__ import annotations

from typing import Annotated

import msgspec

Name = Annotated[str, msgspec.Meta(pattern=r"^[%|a-zA-Z0-9_-]{1,127}$")]
"""What can also be a topic's name: there are topics named like cluster and broker."""
Queues = Annotated[int, msgspec.Meta(ge=1, le=1024)]

TOPIC_QUEUES = 8
"""Queues of a topic of which nobody says how many."""


NameServers = Annotated[str, msgspec.Meta(pattern=r"^[^;\s]+:\d+(;[^;\s]+:\d+)*$")]


class MigrationConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cluster that this one takes topics over from."""

    name_server: NameServers
    """HOST:PORT, several joined by semicolons, in plain text. Whose topics are not here
    yet, or are mirrors, clients are led there; and no topic is made by sending."""


class TopicsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How topics and groups come to be."""

    auto_create: bool = True
    """Make a topic when somebody sends to it."""
    auto_create_groups: bool = True
    default_queues: Queues = TOPIC_QUEUES
    """Queues of TBW102: the most that an automatic topic gets."""
    create: dict[Name, Queues] = {}
    """Topics that are created at the start where they are missing, with how many queues
    each."""
    check_message_types: bool = False
    """Refuse messages of another type than their topic's attribute message.type says,
    NORMAL where it has none, as RocketMQ's proxy does and its brokers do not."""
    mixed_message_type: bool = False
    """Allow the type MIXED: topics that take any message."""
