"""Every command's header, a file a family; importing this fills the registry."""

from gateway.wire.commands import (
    admin,
    auth,
    broker_admin,
    callbacks,
    clients,
    forward,
    group_admin,
    namesrv,
    namesrv_admin,
    offsets,
    pop,
    pull,
    query,
    reply,
    send,
    transactions,
)

__all__ = [
    "admin",
    "auth",
    "broker_admin",
    "callbacks",
    "clients",
    "forward",
    "group_admin",
    "namesrv",
    "namesrv_admin",
    "offsets",
    "pop",
    "pull",
    "query",
    "reply",
    "send",
    "transactions",
]
