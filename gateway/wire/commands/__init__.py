"""Every command's header, a file a family; importing this fills the registry."""

from gateway.wire.commands import (
    admin,
    callbacks,
    clients,
    namesrv,
    offsets,
    pull,
    query,
    send,
)

__all__ = [
    "admin",
    "callbacks",
    "clients",
    "namesrv",
    "offsets",
    "pull",
    "query",
    "send",
]
