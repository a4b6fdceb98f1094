"""Runs a workload under the recorder, in a process of its own.

    python -m tests.power.recorded WORKLOAD DIRECTORY

A workload says by `mark` what it was promised: from then on it has to be there.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tests import builds

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

TIMEOUT_S = 300
KILLED = 9
"""What a workload ends with that stands for a process that was killed."""
HELPERS = {
    "ropeway.common.system.sync_data",
    "ropeway.storage.directories.sync_directory",
    "ropeway.storage.compaction.disk.Disk.sync",
    "ropeway.storage.compaction.disk.Disk.sync_directory",
}
"""Sync for others: these are the sites."""


def record(workload: str, directory: Path, trace: Path) -> None:
    """Run a workload in a directory, and add to a trace what it does there."""
    library = builds.shared_object(Path(__file__).with_name("recorder.c"))
    done = subprocess.run(
        [sys.executable, "-m", __name__, workload, str(directory)],
        env=os.environ
        | {
            "LD_PRELOAD": str(library),
            "POWER_ROOT": str(directory),
            "POWER_TRACE": str(trace),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode in {0, KILLED}, done.stdout + done.stderr


def mark(text: str) -> None:
    """Note in the trace what was promised."""
    ctypes.CDLL(None).power_mark(text.encode())


def kill() -> None:
    """End this process as by a kill, whatever its threads do."""
    ctypes.CDLL(None).power_kill(KILLED)


def _name_sites() -> None:
    """Have the recorder told which function of ours calls each sync."""
    library = ctypes.CDLL(None)

    def named(sync: Callable[[int], None]) -> Callable[[int], None]:
        def call(descriptor: int) -> None:
            frame = sys._getframe(1)
            while (site := _site(frame)) in HELPERS:
                frame = cast("FrameType", frame.f_back)
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                site += ", names"
            library.power_site(site.encode())
            sync(descriptor)

        return call

    os.fsync = named(os.fsync)  # type: ignore[assignment]
    os.fdatasync = named(os.fdatasync)


def _site(frame: FrameType) -> str:
    return f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"


def main(workload: str, directory: str) -> None:
    """Run the workload `module:function`."""
    _name_sites()
    module, _, function = workload.partition(":")
    asyncio.run(getattr(importlib.import_module(module), function)(Path(directory)))


if __name__ == "__main__":
    main(*sys.argv[1:])
