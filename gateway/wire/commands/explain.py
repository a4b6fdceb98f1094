"""A request of our own: what access control would decide, and why."""

from __future__ import annotations

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.ROPEWAY_EXPLAIN_ACCESS)
class ExplainAccess(Header, frozen=True):
    """Ask what would be decided; answered by `access_bodies.AccessExplanation`."""

    principal: str
    """A name, or the name of who knows it and that: `users:alice`."""
    action: str
    resource: str
    """`topic:orders`, and likewise group, cluster and namespace."""
    address: str
    """The IP address that it would come from."""
