"""A node that kills itself at one step of a delivery: its data, the step, its port."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

from ropeway.gateway.app import App
from ropeway.gateway.config import ListenerConfig, TimerConfig
from ropeway.gateway.node.timer.delivery import Delivery
from ropeway.gateway.node.timer.index import Index
from ropeway.gateway.node.timer.timer import Timer
from tests.remoting import config

BEFORE, AFTER = False, True
STEPS = {
    "before it is indexed": (Index, "add", BEFORE, 1),
    "after it was indexed": (Index, "add", AFTER, 1),
    "when it is due": (Index, "recalled", BEFORE, 1),
    "before it is delivered": (Delivery, "_append", BEFORE, 1),
    "while it is being delivered": (Delivery, "_append", AFTER, 1),
    "after it was delivered": (Index, "remove", BEFORE, 1),
    "before that is noted": (Index, "remove", AFTER, 1),
    # The first time is at the start.
    "after that was noted": (Timer, "_commit", AFTER, 2),
}
"""Functions, and at which of their calls to die."""


def die_at(step: str) -> None:
    """Have a step be this process's last deed."""
    owner, name, after, number = STEPS[step]
    true = getattr(owner, name)
    calls = itertools.count(1)

    def counted(*args: object, **more: object) -> object:
        is_last = next(calls) == number
        if is_last and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = true(*args, **more)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, counted)


async def main(data: str, step: str, port: str) -> None:
    """Serve until the step, or until told to stop."""
    if step != "never":
        die_at(step)
    settings = config(
        Path(data), listeners=(ListenerConfig(port=int(port)),), timer=TimerConfig()
    )
    async with App(settings):
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
