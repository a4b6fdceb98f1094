"""Serving gRPC where a node is told to.

gRPC is imported here only when it is needed: it takes 30 MiB, and comes with an extra.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gateway.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.app import App


@contextlib.asynccontextmanager
async def messaging(app: App) -> AsyncIterator[None]:
    """Take calls on the listeners of a node, if it is to, until the end of the block.

    Raises:
        ConfigError: It is to, and the extra is missing.
    """
    if not app.node.config.grpc:
        yield
        return
    try:
        from gateway.grpc.messaging import Messaging  # noqa: PLC0415 - see above
    except ImportError as error:
        raise ConfigError(
            f"grpc needs the extra grpc: pip install 'ropeway[grpc]' ({error})"
        ) from error
    async with Messaging(app).serving():
        yield
