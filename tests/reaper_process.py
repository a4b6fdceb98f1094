"""The program that waits for the end of a process of pytest, and cleans up behind it.

Apart from `reaper`, which starts it, so that it imports little until then.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

DONE = b"done"
"""What the process of pytest says that ends in good order."""
LOOK_S = 1.0
"""How often it is looked for that process: a child of it that was forked, and executed
no other program, holds the pipe open."""
GONE_S = 10.0
"""After SIGKILL a process is gone, unless a disk has it wait."""
LARGE_BYTES = 8 << 20
"""A file of this size is no log to read, but a server's data: of those a failed run
left 12 GiB, in memory."""


def main(variable: str, name: str, folder: str = "", *temporary: str) -> None:
    """Wait for the end of the parent, and clean up.

    Args:
        variable: Names it in the environment of what it started.
        name: Its name there.
        folder: One that goes where the parent did not end in good order; else what is
            large in it.
        temporary: Folders that go in any case.
    """
    parent = os.getppid()
    said = b""
    while os.getppid() == parent:
        if select.select([0], [], [], LOOK_S)[0]:
            piece = os.read(0, 64)
            said += piece
            if not piece:
                break
    reap(variable, name)
    for path in (*temporary, "" if said == DONE else folder):
        if path:
            shutil.rmtree(path, ignore_errors=True)
    if folder:
        leave_out_large(folder)


def leave_out_large(folder: str) -> None:
    """Delete the files of a folder that are large."""
    # Unlike `Path.rglob`, a walk goes on where a folder is removed meanwhile.
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            with contextlib.suppress(OSError):
                if path.lstat().st_size >= LARGE_BYTES:
                    path.unlink()


def reap(variable: str, name: str) -> None:
    """End all processes that carry a name in their environment."""
    import psutil

    give_up = time.monotonic() + GONE_S
    while time.monotonic() < give_up:
        found = [one for one in psutil.process_iter() if _has(one, variable, name)]
        if not found:
            return
        for one in found:
            with contextlib.suppress(psutil.Error):
                one.kill()
        time.sleep(0.01)


def _has(process: psutil.Process, variable: str, name: str) -> bool:
    import psutil

    try:
        # A zombie has nothing any more, but for a parent that has not asked for it.
        return process.environ().get(variable) == name
    except (psutil.Error, OSError):
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
