"""Who sends requests, and from where: what hooks, guards and the audit log speak of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct


class Channel(StrEnum):
    """The way that a request came."""

    REMOTING = "remoting"
    GRPC = "grpc"
    HTTP = "http"
    """By the web page, in the name of who looks at it."""
    FORWARDED = "forwarded"
    """From another node of the cluster, which says who sent it, and signed that."""


class Source(Struct, frozen=True):
    """Where requests come from: one for each connection."""

    address: str
    """The client's IP address, without its port; never a proxy's word for it."""
    channel: Channel
    certificate: Mapping[str, Any] | None = None
    """What `ssl.SSLSocket.getpeercert` says of a client's certificate; None where it
    showed none, or nobody verified it."""


class Principal(Struct, frozen=True, cache_hash=True, gc=False):
    """Who sent a request. It travels to other nodes, so it holds no secret."""

    name: str
    """Unique among those of the hook that knows it."""
    hook: str
    """The name of that hook."""
    super: bool = False
    """Everything is allowed, whatever authorizers would say."""
    rule: str = ""
    """Why it is believed, for people: the account, the address, the token's key."""
    namespace: str = ""
    """`Credentials.namespace`, where the hook found that it may be believed."""
    roles: tuple[str, ...] = ()
    """What the name stands for where others give permissions, as Pulsar does."""

    def __str__(self) -> str:
        return f"{self.hook}:{self.name}"
