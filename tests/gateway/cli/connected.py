"""Clients that are connected while a test looks.

They run in a thread of their own: commands handle signals, in the main one.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from ropeway.client import Message, Producer, PullConsumer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from contextlib import AbstractAsyncContextManager

WAIT_S = 60


@asynccontextmanager
async def _both(name_server: str, topic: str) -> AsyncIterator[None]:
    async with (
        Producer(name_server, f"p-{topic}") as producer,
        PullConsumer(name_server, f"c-{topic}") as consumer,
    ):
        consumer.subscribe(topic, "a || b")
        await producer.send(Message(topic, b"x", tags="a"))
        while not await consumer.poll(1.0):
            pass
        yield


@contextmanager
def connected(name_server: str, topic: str) -> Iterator[None]:
    """Have a producer in the group `p-TOPIC`, and a consumer in `c-TOPIC`."""
    with beside(_both(name_server, topic)):
        yield


@contextmanager
def beside(clients: AbstractAsyncContextManager[None]) -> Iterator[None]:
    """Have some clients in a thread."""
    ready, stop = threading.Event(), threading.Event()

    async def work() -> None:
        async with clients:
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(work(),))
    thread.start()
    try:
        assert ready.wait(WAIT_S)
        yield
    finally:
        stop.set()
        thread.join()
