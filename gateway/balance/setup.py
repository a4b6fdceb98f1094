"""Balancing loads, where a node's configuration asks for it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from ropeway.gateway.config import ConfigError
from ropeway.gateway.node.backoff import keep_doing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.gateway.app import App


@asynccontextmanager
async def balancing(app: App) -> AsyncIterator[None]:
    """Move queues by load, if a node is to, until the end of the block.

    Raises:
        ConfigError: It is to, and its log is its own.
    """
    config = app.node.config
    if config.balance.by_load == "off":
        yield
        return
    if config.pulsar is None:
        raise ConfigError(
            f'balance.by_load is "{config.balance.by_load}", and queues move between '
            'brokers on Pulsar alone; allowed here: "off"'
        )
    # Who balances nothing does not pay for the client: 0.05 s of CPU.
    from ropeway.gateway.balance.balancer import Balancer  # noqa: PLC0415

    balancer = Balancer(app, config.balance)
    every_s = config.balance.every_ms / 1000
    task = asyncio.get_running_loop().create_task(
        keep_doing("balance by load", every_s, balancer.step)
    )
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
