"""Whose client ids are: nobody registers as a client of another principal.

An id belongs to the principal that registered it, on as many connections as its client
has, and is free when the last of these is gone or has nothing registered any more. A
connection has one id, the last that it said. It may change its principal, as clients
do whose credentials are renewed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropeway.acl.api import Principal
    from ropeway.gateway.node.link import Link


class TakenError(Exception):
    """A client id is in use, by a client of somebody else."""

    def __init__(self, client_id: str) -> None:
        super().__init__(
            f"client id {client_id:.200} is in use by another user's client; allowed: "
            "an id of one's own, which clients make of their instance name"
        )


def is_same(one: Principal | None, other: Principal | None) -> bool:
    """Whether two are one principal, whatever rule it is believed by."""
    if one is None or other is None:
        return one is other
    return (one.hook, one.name) == (other.hook, other.name)


class ClientOwners:
    """The client ids of one node's connections.

    Args:
        dry_run: Refuse nobody.
    """

    def __init__(self, *, dry_run: bool = False) -> None:
        self._dry_run = dry_run
        self._owners: dict[str, dict[Link, Principal]] = {}
        self._ids: dict[Link, str] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def claim(self, link: Link, client_id: str, principal: Principal | None) -> None:
        """A client registers; None: nobody knows whose it is, and it owns nothing.

        Raises:
            TakenError: With somebody else's id.
        """
        for other, owner in self._owners.get(client_id, {}).items():
            if other is not link:
                self.check(client_id, owner, principal)
        if self._ids.get(link) != client_id:
            self.release(link)
        if principal is not None:
            self._ids[link] = client_id
            self._owners.setdefault(client_id, {})[link] = principal

    def check(
        self, client_id: str, owner: Principal, principal: Principal | None
    ) -> None:
        """Let a principal use an id that somebody has.

        Raises:
            TakenError: That is somebody else.
        """
        if not self._dry_run and not is_same(owner, principal):
            raise TakenError(client_id)

    def of(self, client_id: str) -> Principal | None:
        """Who has an id; None where nobody does."""
        return next(iter(self._owners.get(client_id, {}).values()), None)

    def release(self, link: Link) -> None:
        """A client has gone, or has nothing registered any more."""
        client_id = self._ids.pop(link, None)
        if client_id is not None:
            links = self._owners[client_id]
            del links[link]
            if not links:
                del self._owners[client_id]
