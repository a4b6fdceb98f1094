"""A consumer that never answers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ropeway.gateway.wire import host_port
from tests.remoting import Remoting, beat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def silent_consumer(
    address: str, group: str, topic: str, client_id: str = "me@silent"
) -> AsyncIterator[None]:
    """A consumer that is connected and never answers what it is asked."""
    host, port = host_port.split(address)
    client = Remoting(*await asyncio.open_connection(host, port))
    try:
        assert (await beat(client, client_id, group, topic=topic)).code == 0
        yield
    finally:
        await client.close()
