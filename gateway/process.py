"""What our long-running processes have in common: their event loop, and their end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
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
OLDER_AFTER = 2
"""So many looks later it looks at what is older, too: 30,000 containers at most."""
NEVER = 2**31 - 1
"""And at all of them not by itself, in the midst of something: `_look_at_all` does."""
LOOK_S = 1.0
CALM_S = 0.1
"""CPU time of it, where little goes on, and how late it may be over: who gets no
processor does little, too."""
CALM_LOOKS = 10
"""So often in a row, to look for cycles among all objects, and more rarely from then
on."""
RARELY_S = 10.0
GROWTH = 1.25
"""So many more there have to be for that, as by Python's own rule."""
MOST_MORE = 3_000_000
"""So many more are looked at whatever goes on: some 256 MiB."""
COUNT_AFTER_S = 0.05
"""CPU time in which few objects come and go. To count them is to touch all memory of
Python, which an idle machine may have put away: 20 ms for 40 MiB, where it is."""


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
    gc.set_threshold(COLLECT_AFTER, OLDER_AFTER, NEVER)
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(_looked_after(work))
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        os.umask(umask)


async def _looked_after(work: Coroutine[None, None, None]) -> None:
    looks = asyncio.get_running_loop().create_task(_look_at_all())
    try:
        await work
    finally:
        looks.cancel()


async def _look_at_all() -> None:
    """Look for cycles among all objects when little goes on.

    That holds up everybody, for half a second where there are a million. What comes and
    goes often is no cycle (see `tests/cycles.py`), so little waits for this.
    """
    fewest = there = sys.getallocatedblocks()
    calm, uncounted_s = 0, 0.0
    while True:
        look_s = RARELY_S if calm >= CALM_LOOKS else LOOK_S
        began_s, cpu_s = time.monotonic(), time.process_time()
        await asyncio.sleep(look_s)
        late_s = time.monotonic() - began_s - look_s
        used_s = time.process_time() - cpu_s
        calm = calm + 1 if max(late_s, used_s) < CALM_S else 0
        uncounted_s += used_s
        if uncounted_s >= COUNT_AFTER_S:
            there, uncounted_s = sys.getallocatedblocks(), 0.0
            fewest = min(fewest, there)
        if there - fewest > MOST_MORE or (
            calm >= CALM_LOOKS and there > fewest * GROWTH
        ):
            gc.collect()
            fewest = there = sys.getallocatedblocks()


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
