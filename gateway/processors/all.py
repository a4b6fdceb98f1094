"""Every processor: importing this fills the table that `dispatch` looks in."""

from gateway.processors import (
    broker_info,
    clients,
    connections,
    forwarded,
    groups_admin,
    namesrv,
    offsets,
    progress,
    pull,
    query,
    retry,
    send,
    topics_admin,
)

__all__ = [
    "broker_info",
    "clients",
    "connections",
    "forwarded",
    "groups_admin",
    "namesrv",
    "offsets",
    "progress",
    "pull",
    "query",
    "retry",
    "send",
    "topics_admin",
]
