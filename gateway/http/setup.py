"""A node's site, where its configuration asks for one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from ropeway.gateway.app import App


@asynccontextmanager
async def site(
    app: App, workers: Mapping[str, int] = MappingProxyType({})
) -> AsyncIterator[str | None]:
    """Serve a node's site within the block; its address, or None where it has none.

    Args:
        app: The node.
        workers: The sites' ports of all workers, where it is one of several.

    Raises:
        ServerError: Its port cannot be had.
    """
    config = app.node.config.http
    if config is None:
        yield None
        return
    # Who has no site does not pay for the library: 0.2 s of CPU and 20 MB.
    from ropeway.gateway.http.web_server import open_site  # noqa: PLC0415

    async with open_site(app, config, workers) as address:
        yield address
