"""Serving gRPC where a node is told to, on the server that it is told.

Either is imported here only when it is needed: protobuf comes with an extra, and grpcio
takes 30 MiB.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ropeway.gateway.config import PackageMissingError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.gateway.app import App
    from ropeway.gateway.grpc.messaging_service import Messaging


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
        from ropeway.gateway.grpc.messaging_service import Messaging  # noqa: PLC0415 - see above

        service = Messaging(app.node)
        calls = _calls(service, app)
    except ImportError as error:
        raise PackageMissingError(
            f"grpc needs the extra grpc: pip install 'ropeway[grpc]' ({error})"
        ) from error
    renewing = asyncio.get_running_loop().create_task(service.renewals.run())
    try:
        async with calls:
            yield
    finally:
        renewing.cancel()


def _calls(
    service: Messaging, app: App
) -> contextlib.AbstractAsyncContextManager[None]:
    """What takes calls, as the settings want it."""
    if app.node.config.grpc_server == "grpcio":
        from ropeway.gateway.grpc.grpcio import GrpcioServer  # noqa: PLC0415 - see above

        return GrpcioServer(service, app.server).serving()
    from ropeway.gateway.grpc.served import Clients  # noqa: PLC0415 - see above

    return Clients(service, app.server).serving()
