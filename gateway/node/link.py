"""A client's connection, as far as a node needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ropeway.acl.api import Source
    from ropeway.gateway.wire.frame import Buffer


class Link(Protocol):
    """Where a client's requests come from, and requests to it go."""

    language: str
    """The client's language; known from its first request on."""
    version: int
    """The client's MQVersion number."""

    source: Source
    """Where its requests come from, for access control."""

    @property
    def address(self) -> str:
        """The client's address, host:port."""

    @property
    def closed(self) -> bool:
        """Whether it has ended; nobody is registered on it any more."""

    def push(self, *data: Buffer) -> None:
        """Send a whole one-way request, in pieces, at the end of this tick."""

    def close(self) -> None:
        """Close the connection."""
