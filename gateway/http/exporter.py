"""Sending metrics and spans to a receiver, where a node's configuration names one.

OpenTelemetry is imported here only when it is needed: it comes with an extra.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.extras import package
from ropeway.gateway.http.metrics.page import gather
from ropeway.gateway.node.backoff import keep_doing
from ropeway.gateway.tracing import receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ropeway.gateway.app import App
    from ropeway.gateway.config import OtlpConfig
    from ropeway.gateway.http.metrics.otlp import Exporter
    from ropeway.gateway.tracing.spans import Spans

log = structlog.get_logger(__name__)

_SPANS_EVERY_S = 1.0
_LAST_S = 2.0
"""How long an end waits for the last spans to be taken."""


@asynccontextmanager
async def exporting(app: App) -> AsyncIterator[None]:
    """Send what a node is to send, if anything, until the end of the block.

    Raises:
        ConfigError: It is to, and the extra is missing, or nobody knows where to.
    """
    config, spans = app.node.config.otlp, app.node.spans
    async with AsyncExitStack() as stack:
        if config is not None and config.metrics:
            await stack.enter_async_context(_metrics(app, config))
        if config is not None and spans is not None:
            await stack.enter_async_context(_spans(config, spans))
        yield


@asynccontextmanager
async def _metrics(app: App, config: OtlpConfig) -> AsyncIterator[None]:
    endpoint = receiver.endpoint(config)
    made = package("ropeway.gateway.http.metrics.otlp", "otlp")
    exporter: Exporter = made.Exporter(endpoint, app.node_name)
    told = _Told("metrics are sent again", "metrics cannot be sent", endpoint)

    async def send() -> None:
        page = await gather(app)
        # Not on the loop: it waits for the receiver.
        told.say(taken=await asyncio.to_thread(exporter.send, page))

    try:
        async with _doing("metrics", config.every_ms / 1000, send):
            yield
    finally:
        exporter.close()


@asynccontextmanager
async def _spans(config: OtlpConfig, spans: Spans) -> AsyncIterator[None]:
    told = _Told("spans are sent again", "spans cannot be sent", config.endpoint)

    async def send() -> None:
        while batch := spans.take():
            told.say(taken=await asyncio.to_thread(spans.send, batch))

    try:
        async with _doing("spans", _SPANS_EVERY_S, send):
            yield
        with suppress(TimeoutError):
            await asyncio.wait_for(send(), _LAST_S)
    finally:
        spans.close()


@asynccontextmanager
async def _doing(
    name: str, every_s: float, send: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """Send again and again, until the end of the block."""
    sending = asyncio.get_running_loop().create_task(keep_doing(name, every_s, send))
    try:
        yield
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


class _Told:
    """Says once that a receiver takes nothing, and once that it does again."""

    def __init__(self, again: str, not_now: str, endpoint: str) -> None:
        self._again = again
        self._not_now = not_now
        self._endpoint = endpoint
        self._taken = True

    def say(self, *, taken: bool) -> None:
        """Tell of a change."""
        was_taken, self._taken = self._taken, taken
        if taken and not was_taken:
            log.info(self._again, endpoint=self._endpoint)
        elif was_taken and not taken:
            log.warning(self._not_now, endpoint=self._endpoint)
