"""Forked children that run tests, and that are ended with all that they started."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_CPU_SECONDS = 0.03
"""Who computes less in a while waits for what will not come."""
MOST_BYTES = 12 << 30
"""Address space of a child: a loop that lost its end must not take the machine."""

_PR_SET_PDEATHSIG = 1
_STDERR = os.dup(2)
"""Where errors of ours are told: pytest captures what is written to file 2."""


def tell(text: str) -> None:
    """Write something to the log of the session."""
    os.write(_STDERR, text.encode())


@dataclass(frozen=True)
class Outcome:
    """What became of a child: "done" and what it gave, "timeout" or "crashed"."""

    status: str
    value: Any = None


def run(
    work: Callable[[], None],
    prepare: Callable[[], None],
    seconds: float,
    idle: float,
    give: Callable[[], Any] = lambda: None,
) -> Outcome:
    """Do some work in a fork of this process.

    Args:
        work: What is done there.
        prepare: What is called there before it.
        seconds: The time it has.
        idle: For how long it may wait and compute next to nothing.
        give: What is called there behind it; its value is given back, as JSON has it.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(work, prepare, give, writing)
    os.close(writing)
    try:
        return _wait(child, reading, time.monotonic() + seconds, idle)
    finally:
        os.close(reading)
        _end(child)


def _in_child(
    work: Callable[[], None],
    prepare: Callable[[], None],
    give: Callable[[], Any],
    writing: int,
) -> None:
    status = 1
    try:
        os.setsid()
        # It must not outlive a session that is killed.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        prepare()
        work()
        os.write(writing, json.dumps(give()).encode() + b"\n")
        status = 0
    except BaseException:  # noqa: BLE001 -- a fork must never go on as its parent
        tell(traceback.format_exc())
    finally:
        os._exit(status)


def _wait(child: int, reading: int, deadline: float, idle: float) -> Outcome:
    data = b""
    spent = -1.0
    while time.monotonic() < deadline:
        ready, _, _ = select.select([reading], [], [], idle)
        if not ready:
            before, spent = spent, _cpu_seconds(child)
            if spent - before < LEAST_CPU_SECONDS:
                return Outcome("timeout")
            continue
        piece = os.read(reading, 65536)
        data += piece
        if data.endswith(b"\n"):
            return Outcome("done", json.loads(data))
        if not piece:
            return Outcome("crashed")
    return Outcome("timeout")


def _cpu_seconds(child: int) -> float:
    """What a child and all that it started have computed."""
    try:
        process = psutil.Process(child)
        times = [
            one.cpu_times() for one in [process, *process.children(recursive=True)]
        ]
    except psutil.Error:
        return 0.0
    return sum(one.user + one.system for one in times)


def _end(child: int) -> None:
    try:
        started = psutil.Process(child).children(recursive=True)
    except psutil.Error:
        started = []
    for kill in [lambda: os.killpg(child, signal.SIGKILL), *(p.kill for p in started)]:
        try:
            kill()
        except (OSError, psutil.Error):
            continue
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def resume_all() -> None:
    """Have all go on that was started here: who was ended may have paused a server."""
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            one.resume()


def use_scratch(scratch: str) -> None:
    """Put temporary files of this process and its children into an empty folder."""
    shutil.rmtree(scratch, ignore_errors=True)
    Path(scratch, "t").mkdir(parents=True)
    os.environ["TMPDIR"] = str(Path(scratch, "t"))
    tempfile.tempdir = None


def count_anew() -> None:
    """Have places on shared servers named as in no other child."""
    fixtures = sys.modules.get("tests.system.fixtures")
    if fixtures is not None:
        fixtures.numbers = itertools.count(os.getpid() * 1000)  # type: ignore[attr-defined]


def wait_less(seconds: float) -> None:
    """Have tests wait no longer than this: for a mutant it is mostly in vain."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tests.") and getattr(module, "TIMEOUT_S", 0) > seconds:
            module.TIMEOUT_S = seconds  # type: ignore[attr-defined]
