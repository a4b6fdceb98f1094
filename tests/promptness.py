"""What is promised to be done within a time, on a machine that others use, too."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STEP_S = 0.005


@asynccontextmanager
async def promptly(promised_s: float) -> AsyncIterator[None]:
    """See that what is done in the block takes no longer than promised.

    Not counted is for how long the loop wanted a processor and had none. What it
    computes itself counts.
    """
    starved_s = 0.0
    looked_s, used_s = time.monotonic(), time.thread_time()

    def look() -> None:
        nonlocal starved_s
        took_s = time.monotonic() - looked_s - STEP_S
        starved_s += max(took_s - (time.thread_time() - used_s), 0.0)

    async def watch() -> None:
        nonlocal looked_s, used_s
        while True:
            looked_s, used_s = time.monotonic(), time.thread_time()
            await asyncio.sleep(STEP_S)
            look()

    watching = asyncio.create_task(watch())
    began_s = time.monotonic()
    try:
        yield
        took_s = time.monotonic() - began_s
        # What is watched with may not have had its turn since then.
        look()
    finally:
        watching.cancel()
    assert took_s - starved_s <= promised_s, (took_s, starved_s)


class Starved(threading.Thread):
    """For how long a thread that does nothing wanted a processor and had none.

    With another process than a server's it is about what that one lacked.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self._starved_s = 0.0
        self.start()

    def run(self) -> None:
        """Look again and again."""
        while not self._ended.is_set():
            began_s = time.monotonic()
            time.sleep(STEP_S)
            self._starved_s += time.monotonic() - began_s - STEP_S

    def end(self) -> float:
        """Look no more; how many seconds it was."""
        self._ended.set()
        self.join()
        return self._starved_s
