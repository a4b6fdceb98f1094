"""What our long-running processes have in common: their event loop, and their end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

from ropeway.gateway.open_files import raise_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ENDING = (signal.SIGTERM, signal.SIGINT)
UMASK = 0o077
"""What is kept is for the user alone that runs the node: files, sockets, directories,
also those that libraries make."""
COLLECT_AFTER = 10_000
"""So many more containers made than freed have Python look for cycles. With its own 700
it looks at hundreds of requests in flight again and again, which are none."""


def run(work: Coroutine[None, None, None]) -> None:
    """Run on uvloop where there is one, with few looks for cycles.

    What is made meanwhile nobody else can read.
    """
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        pass
    else:
        factory = uvloop.new_event_loop
    raise_limit()
    umask = os.umask(UMASK)
    thresholds = gc.get_threshold()
    # What is there by now stays: nobody need look at it again.
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(work)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        os.umask(umask)


def settled() -> None:
    """Say that all is there that stays: topics and partitions above all.

    Of 80,000 queues Python would look at half a million objects in one go, for a
    quarter of a second, whenever requests had made a quarter as many.
    """
    gc.freeze()


def stop_on_signal() -> asyncio.Event:
    """An event that the first SIGTERM or SIGINT sets; a second one ends the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ENDING:
        loop.add_signal_handler(number, partial(_stop, loop, stop))
    return stop


def _stop(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    stop.set()
    # Whoever asks a second time does not want to wait.
    for number in ENDING:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
