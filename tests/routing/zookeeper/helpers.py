"""What tests of routes on ZooKeeper have in common."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kazoo.client import KazooClient

from ropeway.routing.zookeeper import ZooKeeperRoutes, ZooKeeperSettings, open_routes
from ropeway.routing.zookeeper.zookeeper_config import parse_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

QUICK = ZooKeeperSettings(session_s=2.0)


@asynccontextmanager
async def opened(
    url: str, count: int = 1, settings: ZooKeeperSettings = QUICK
) -> AsyncIterator[list[ZooKeeperRoutes]]:
    """Several stores in one place, as several nodes have them."""
    stores = [await open_routes(url, settings) for _ in range(count)]
    try:
        yield stores
    finally:
        for one in stores:
            await one.close()


@asynccontextmanager
async def raw(url: str) -> AsyncIterator[KazooClient]:
    """A client of one's own, with paths from the place on."""
    place = parse_url(url)
    client = KazooClient(place.hosts)
    await asyncio.to_thread(client.start)
    client.ensure_path(place.root)
    client.chroot = place.root
    try:
        yield client
    finally:
        await asyncio.to_thread(client.stop)
        client.close()


async def expire(routes: ZooKeeperRoutes) -> None:
    """End a store's session at the servers, as if nothing had been heard of it."""
    ours = routes._session._client
    other = KazooClient(
        ",".join(f"{host}:{port}" for host, port in ours.hosts),
        client_id=ours.client_id,
    )
    await asyncio.to_thread(other.start)
    await asyncio.to_thread(other.stop)
    other.close()
