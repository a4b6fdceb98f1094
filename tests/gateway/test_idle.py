"""A node with nothing to do sleeps: which timers it has asked its loop for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import uvloop

from tests.gateway.processors.test_transactions import half
from tests.remoting import TIMEOUT_S, running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from ropeway.gateway.app import App
    from tests.remoting import Remoting

RARE_S = 4.0
"""Who wakes so seldom costs nothing."""


class Remembering(uvloop.Loop):
    """Knows which timers it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: list[tuple[float, asyncio.TimerHandle]] = []

    def call_later(self, delay: Any, callback: Any, *args: Any, **more: Any) -> Any:
        handle = super().call_later(delay, callback, *args, **more)
        self._asked.append((delay, handle))
        return handle

    def call_at(self, when: Any, callback: Any, *args: Any, **more: Any) -> Any:
        return self.call_later(when - self.time(), callback, *args, **more)

    def pending(self) -> list[float]:
        """In how many seconds those were to come that have not come yet."""
        self._asked = [
            (delay_s, handle)
            for delay_s, handle in self._asked
            if handle.when() > self.time() and not handle.cancelled()
        ]
        return [delay_s for delay_s, _ in self._asked]


def with_timers(
    data: Path, test: Callable[[App, Remoting, Remembering], Awaitable[None]]
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Remembering)
        async with asyncio.timeout(4 * TIMEOUT_S), running(data) as (app, client):
            await test(app, client, loop)

    with asyncio.Runner(loop_factory=Remembering) as runner:
        runner.run(main())


def test_an_idle_node_asks_for_no_timer_that_comes_soon(tmp_path: Path):
    async def idle(app: App, client: Remoting, loop: Remembering) -> None:
        await client.ask(sending("orders"), b"1")
        assert (await client.ask(pulling("orders"))).messages()
        await until(lambda: min(loop.pending()) >= RARE_S)
        end = await half(client)
        await until(lambda: min(loop.pending()) <= 1)
        await client.ask(end)
        await until(lambda: min(loop.pending()) >= RARE_S)
        assert len(app.node.transactions) == 0

    with_timers(tmp_path, idle)


def test_who_is_slow_or_unknown_is_looked_after_each_second(tmp_path: Path):
    async def looked_after(app: App, _: Remoting, loop: Remembering) -> None:
        (listener,), unauthenticated = app.server.listeners, app.server.unauthenticated
        (connection,) = listener.connections
        unauthenticated._is_guarded = True
        for begin, end in (
            (listener.slow, listener.caught_up),
            (unauthenticated.joined, unauthenticated.left),
        ):
            await until(lambda: min(loop.pending()) >= RARE_S)
            begin(connection)
            await until(lambda: min(loop.pending()) <= 1)
            end(connection)

    with_timers(tmp_path, looked_after)
