"""How topics and groups come to be, as the configuration says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from ropeway.client.tls import TlsFiles

Name = Annotated[str, msgspec.Meta(pattern=r"^[%|a-zA-Z0-9_-]{1,127}$")]
"""What can also be a topic's name: there are topics named like cluster and broker."""
Queues = Annotated[int, msgspec.Meta(ge=1, le=1024)]

TOPIC_QUEUES = 8
"""Queues of a topic of which nobody says how many."""


NameServers = Annotated[str, msgspec.Meta(pattern=r"^[^;\s]+:\d+(;[^;\s]+:\d+)*$")]


class MigrationTlsConfig(TlsFiles, frozen=True, forbid_unknown_fields=True):
    """How nodes speak TLS with the source; empty, it trusts what the system does."""

    server_name: str | None = None
    """The name in the source's certificates, where it is another than its address."""


class MigrationConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cluster that this one takes topics over from."""

    name_server: NameServers
    """HOST:PORT, several joined by semicolons. Whose topics are not here yet, or are
    mirrors, clients are led there; and no topic is made by sending."""
    access_key: str | None = None
    """Who sends there what producers send here during a cut-over; that account needs
    `Pub` to the topics that move."""
    secret_key_file: Path | None = None
    """Its secret key; read at the start."""
    tls: MigrationTlsConfig | None = None
    """Where it is given, the source is asked by TLS."""


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
