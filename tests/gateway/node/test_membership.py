"""Nodes fill one broker after the other, and stay where they are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.node.membership import NAMESPACE, join
from ropeway.routing.embedded import EmbeddedRoutes
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_brokers_are_filled_one_after_the_other(tmp_path: Path):
    routes = EmbeddedRoutes(tmp_path / "routes.db")
    joined = [await join(routes, f"node-{i}", "broker-0", 2) for i in range(5)]
    assert joined == ["broker-0", "broker-0", "broker-1", "broker-1", "broker-2"]
    await routes.close()


@looped
async def test_a_node_finds_its_broker_again(tmp_path: Path):
    path = tmp_path / "routes.db"
    routes = EmbeddedRoutes(path)
    await join(routes, "a", "broker-0", 1)
    await join(routes, "b", "broker-0", 1)
    await routes.close()
    routes = EmbeddedRoutes(path)
    assert await join(routes, "b", "broker-0", 1) == "broker-1"
    assert await join(routes, "a", "broker-0", 1) == "broker-0"
    await routes.put_setting(NAMESPACE, "a", "moved")
    assert await join(routes, "a", "broker-0", 1) == "moved"
    await routes.close()


@looped
async def test_nodes_that_come_together_do_not_crowd_a_broker(tmp_path: Path):
    async def come(number: int) -> str:
        routes = EmbeddedRoutes(tmp_path / "routes.db")
        routes.follow()
        try:
            return await join(routes, f"node-{number}", "rocket", 2)
        finally:
            await routes.close()

    joined = await asyncio.gather(*map(come, range(6)))
    assert max(map(joined.count, joined)) <= 2
    assert "rocket-0" in joined
