"""The request of our own: one node has another work on a client's request."""

from __future__ import annotations

from gateway.wire.codes import RequestCode
from gateway.wire.header import Access, Header, request


@request(RequestCode.ROPEWAY_FORWARD, access=Access.NONE)
class Forward(Header, frozen=True):
    """Work on the request whose whole frame is the body.

    The answer's body is the whole frame of the request's own answer, or nothing where
    it wants none. Access is the client's, and checked for the request inside.
    """

    client: str
    """Who sent the request, host:port."""
