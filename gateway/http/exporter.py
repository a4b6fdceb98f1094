"""Sending metrics to a receiver, where a node's configuration names one.

OpenTelemetry is imported here only when it is needed: it comes with an extra.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.config import ConfigError, PackageMissingError
from ropeway.gateway.http.metrics.page import gather
from ropeway.gateway.node.backoff import keep_doing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ropeway.gateway.app import App
    from ropeway.gateway.config import OtlpConfig
    from ropeway.gateway.http.metrics.otlp import Exporter

log = structlog.get_logger(__name__)

_SCHEMES = ("http://", "https://")


@asynccontextmanager
async def exporting(app: App) -> AsyncIterator[None]:
    """Send the metrics of a node, if it is to, until the end of the block.

    Raises:
        ConfigError: It is to, and the extra is missing, or nobody knows where to.
    """
    config = app.node.config.otlp
    if config is None:
        yield
        return
    exporter = _exporter(app, config)
    sending = asyncio.get_running_loop().create_task(_run(app, config, exporter))
    try:
        yield
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        exporter.close()


def _exporter(app: App, config: OtlpConfig) -> Exporter:
    if not config.endpoint.startswith(_SCHEMES):
        raise ConfigError(
            f"otlp.endpoint is {config.endpoint!r:.200}; allowed: http://HOST:PORT or "
            "https://HOST:PORT"
        )
    try:
        from ropeway.gateway.http.metrics.otlp import Exporter  # noqa: PLC0415 - see above
    except ImportError as error:
        raise PackageMissingError(
            f"otlp needs the extra otlp: pip install 'ropeway[otlp]' ({error})"
        ) from error
    return Exporter(config.endpoint, app.node_name)


async def _run(app: App, config: OtlpConfig, exporter: Exporter) -> None:
    taken = True

    async def send() -> None:
        nonlocal taken
        page = await gather(app)
        # Not on the loop: it waits for the receiver.
        was_taken, taken = taken, await asyncio.to_thread(exporter.send, page)
        if taken and not was_taken:
            log.info("metrics are sent again", endpoint=config.endpoint)
        elif was_taken and not taken:
            log.warning("metrics cannot be sent", endpoint=config.endpoint)

    await keep_doing("metrics", config.every_ms / 1000, send)
