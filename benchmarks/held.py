"""Runs `ropeway`, and writes down each time that its event loop was held up.

    $ python -m benchmarks.held FILE 20 serve --data DIRECTORY ...

That is: for more than 20 milliseconds of CPU between two looks at the clock, which are
5 ms apart. Everybody waits for so long, however busy the machine is with other things.
FILE gets a line of JSON for each: how many milliseconds, and what the loop did when it
had been too long, innermost first.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ropeway.gateway.app import App

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

LOOK_S = 0.005
FRAMES = 12
"""So many of the innermost are kept."""


class Held(NamedTuple):
    """One time that the loop was held up."""

    ms: float
    """Of CPU."""
    stack: list[str]
    """`file:function:line`, innermost first."""


def read(path: Path) -> list[Held]:
    """What stands in a file by now."""
    return [Held(*json.loads(line)) for line in path.read_text().splitlines()]


def at_start(begin: Callable[[], object]) -> None:
    """Have the nodes of this process call `begin` in their loops, before they start."""
    enter = App.__aenter__

    async def entered(app: App) -> App:
        begin()
        return await enter(app)

    App.__aenter__ = entered  # type: ignore[method-assign]


def look(wait_s: Callable[[], float], looked: Callable[[float], None]) -> None:
    """Look at the clock from within the loop that runs, for as long as it does.

    Args:
        wait_s: In how many seconds to look again.
        looked: Is told how much CPU time the loop has spent since the last look.
    """
    loop = asyncio.get_running_loop()

    def again(before_s: float) -> None:
        now_s = time.thread_time()
        looked(now_s - before_s)
        loop.call_later(wait_s(), again, now_s)

    again(time.thread_time())


class Watch:
    """Looks from within the loop at the clock, and from beside it at the loop.

    Args:
        path: Of the file that gets the lines.
        most_s: CPU time that is not worth a line.
    """

    def __init__(self, path: Path, most_s: float) -> None:
        self._path = path
        self._most_s = most_s
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._looked_s = time.clock_gettime(self._clock)
        self._stack: list[str] = []
        self._ended = threading.Event()
        look(lambda: LOOK_S, self._looked)
        threading.Thread(target=self._look_at_it, daemon=True).start()

    def close(self) -> None:
        """Look no more from beside it."""
        self._ended.set()

    def _looked(self, held_s: float) -> None:
        self._looked_s = time.clock_gettime(self._clock)
        stack, self._stack = self._stack, []
        if held_s > self._most_s:
            with self._path.open("a") as file:
                file.write(json.dumps(Held(held_s * 1000, stack)) + "\n")

    def _look_at_it(self) -> None:
        while not self._ended.wait(LOOK_S):
            held_s = time.clock_gettime(self._clock) - self._looked_s
            if held_s > self._most_s and not self._stack:
                self._stack = _named(sys._current_frames()[self._thread])  # noqa: SLF001


def _named(frame: FrameType | None) -> list[str]:
    names = []
    while frame is not None and len(names) < FRAMES:
        code = frame.f_code
        file = "/".join(Path(code.co_filename).parts[-2:])
        names.append(f"{file}:{code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return names


def main() -> None:
    """Watch the node that this process is going to be."""
    where, most_s = Path(sys.argv.pop(1)), int(sys.argv.pop(1)) / 1000
    from ropeway.gateway.cli.main import main as ropeway  # noqa: PLC0415 - run it once

    where.touch()
    at_start(partial(Watch, where, most_s))
    ropeway()


if __name__ == "__main__":
    main()
