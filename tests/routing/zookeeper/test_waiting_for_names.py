"""How long a node waits for the one that had its name: without servers."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ropeway.routing.api import Broker, NameTakenError
from ropeway.routing.zookeeper import node_names
from ropeway.routing.zookeeper.node_names import OUTLIVED, Names

OURS = Broker(name="broker-0", node="a", cluster="c", addresses=("h:1",), pid=2)
RIVAL = Broker(name="broker-0", node="a", cluster="c", addresses=("h:1",), pid=1)
SESSION_S = 10.0


class Servers:
    """Another process has the name, at each look until the last.

    Args:
        looks: When each look is, in seconds.
        new_at: The look before which the connection was a new one.
    """

    def __init__(self, looks: list[float], new_at: int | None) -> None:
        self.now_s = 0.0
        self.session = SimpleNamespace(timeout_s=SESSION_S, connections=1)
        self._looks = looks
        self._new_at = new_at
        self._changed = asyncio.Event()
        self._count = 0

    @contextmanager
    def watching(self):
        yield self._changed

    def misses(self, _: Broker) -> bool:
        return False

    async def put(self, _: Broker) -> Broker | None:
        self.now_s = self._looks[self._count]
        if self._count == self._new_at:
            self.session.connections += 1
        self._count += 1
        self._changed.set()
        return RIVAL if self._count < len(self._looks) else None


async def announced(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: servers.now_s)
    monkeypatch.setattr(node_names, "time", clock)
    await Names(servers.session, servers, servers.put).announce(OURS)


def test_who_has_the_name_for_longer_than_a_dead_process_is_alive(
    monkeypatch: pytest.MonkeyPatch,
):
    async def main():
        looks = [0.0, SESSION_S, OUTLIVED * SESSION_S, 25.0]
        with pytest.raises(NameTakenError, match="runs already, as process 1"):
            await announced(Servers(looks, None), monkeypatch)

    asyncio.run(main())


def test_servers_with_a_new_leader_know_a_dead_process_for_longer(
    monkeypatch: pytest.MonkeyPatch,
):
    async def main():
        looks = [0.0, SESSION_S, OUTLIVED * SESSION_S, 25.0]
        servers = Servers(looks, 1)
        await announced(servers, monkeypatch)
        assert servers.now_s == 25.0

    asyncio.run(main())
