"""Mutants on disk, and a pytest of its own for one that only a new import shows."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from scripts.mutants import children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OPTIONS = [
    *["-q", "-p", "no:cacheprovider", "-p", "no:rerunfailures"],
    *["-o", "addopts=", "--import-mode=importlib", "-o", "timeout=0"],
]
SECONDS = 240.0
"""What such a run may take: tests that take 20, an import, the start of a server."""


@contextlib.contextmanager
def on_disk(file: Path, changed: bytes) -> Iterator[None]:
    """Have a file of the copy hold a mutant, for what tests start as processes."""
    was, stat = file.read_bytes(), file.stat()
    file.write_bytes(changed)
    # No time that bytecode was ever kept for: it is found by seconds and size.
    os.utime(file, (stat.st_mtime + 7, stat.st_mtime + 7))
    try:
        yield
    finally:
        file.write_bytes(was)
        os.utime(file, (stat.st_atime, stat.st_mtime))


def within(ordered: list[str], seconds: dict[str, float], most: float) -> list[str]:
    """The first files, and those behind it that have room in the time."""
    chosen: list[str] = []
    spent = 0.0
    for name in ordered:
        if not chosen or spent + seconds[name] <= most:
            chosen.append(name)
            spent += seconds[name]
    return chosen


def run(
    files: list[str], failing: list[str], scratch: str, marks: list[str]
) -> dict[str, Any]:
    """Run test files until one test fails.

    Args:
        files: Their names, relative to the tree.
        failing: Tests to leave out.
        scratch: A folder for temporary files, emptied before.
        marks: Tests with one of these are left out, too.
    """
    if not files:
        return {"status": "unreached", "tests": 0, "seconds": 0.0}
    began = time.monotonic()
    children.use_scratch(scratch)
    process = subprocess.Popen(
        [
            *[sys.executable, "-m", "pytest", "-x", *OPTIONS],
            *["-m", f"not ({' or '.join(marks)})"],
            *[f"--basetemp={scratch}/b", "--no-header", "--tb=no", "-rfE"],
            *[f"--deselect={one}" for one in failing],
            *files,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    row: dict[str, Any] = {"tests": len(files)}
    try:
        told, _ = process.communicate(timeout=SECONDS)
        if process.returncode in {0, 5}:  # 5: nothing to run
            row["status"] = "survived" if process.returncode == 0 else "unreached"
        else:
            names = [i for i in told.splitlines() if i.startswith(("FAILED", "ERROR"))]
            row |= {"status": "killed", "by": (names or ["import"])[0][:200]}
    except subprocess.TimeoutExpired:
        row["status"] = "timeout"
    finally:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return row | {"seconds": round(time.monotonic() - began, 2), "alone": True}
