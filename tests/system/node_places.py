"""The places of nodes in ZooKeeper, which a test deletes or lets expire."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kazoo.client import KazooClient

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_S = 90.0
SECRET = 0xB3415C00
"""What ZooKeeper makes passwords of sessions with: SessionTrackerImpl and
ZooKeeperServer.generatePasswd of 3.9.5."""


def password(session: int) -> bytes:
    """A session's: sixteen bytes of Java's Random, whose seed is the number."""
    state = (session ^ SECRET ^ 0x5DEECE66D) & ((1 << 48) - 1)
    made = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        made += (state >> 16).to_bytes(4, "little")
    return made


class Places:
    """The places of a broker's nodes in ZooKeeper."""

    def __init__(self, routes: str) -> None:
        self._hosts, _, path = routes.removeprefix("zookeeper://").partition("/")
        self._client = KazooClient(self._hosts)
        self._client.start(WAIT_S)
        self._folder = f"/{path}/brokers/broker-0"

    def order(self) -> list[str]:
        """The nodes, the master first."""
        found = sorted(
            self._client.get_children(self._folder), key=lambda one: one[-10:]
        )
        return [one[:-11] for one in found]

    def _path(self, node: str) -> str:
        names = self._client.get_children(self._folder)
        (name,) = (one for one in names if one.startswith(f"{node},"))
        return f"{self._folder}/{name}"

    def delete(self, node: str) -> None:
        """As by hand."""
        self._client.delete(self._path(node))

    def expire(self, node: str) -> None:
        """End a node's session by its number, as a server does."""
        _, stat = self._client.get(self._path(node))
        session = stat.ephemeralOwner
        other = KazooClient(
            self._hosts, client_id=(session, password(session & ((1 << 64) - 1)))
        )
        other.start(WAIT_S)
        assert other.client_id[0] == session
        other.stop()
        other.close()

    def close(self) -> None:
        self._client.stop()
        self._client.close()


@contextmanager
def places(routes: str) -> Iterator[Places]:
    made = Places(routes)
    try:
        yield made
    finally:
        made.close()
