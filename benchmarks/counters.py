"""What the kernel counts of a process: CPU time, and memory by its kind."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

KIB_A_MIB = 1024
CPU_CLOCK = 2
"""CPUCLOCK_SCHED of the kernel's posix-timers.h: what the scheduler counted."""


class Memory(NamedTuple):
    """Resident memory of a process, MiB."""

    anonymous_mib: float
    mapped_mib: float
    """Pages of files; the page cache has them too."""


def tree(pid: int) -> list[int]:
    """A process and all that it has started."""
    children = psutil.Process(pid).children(recursive=True)
    return [pid, *(child.pid for child in children)]


def cpu_s(pid: int) -> float:
    """CPU time of all threads so far, ended ones too, kernel included.

    /proc/PID/stat counts the same in ticks of 10 ms. This is the clock that
    clock_getcpuclockid(3) names, to the nanosecond.
    """
    return sum(time.clock_gettime((~one << 3) | CPU_CLOCK) for one in tree(pid))


def cpu_by_part_s(gateway_pid: int) -> dict[str, float]:
    """CPU time so far of a gateway, and of the Python and JVM of a Spark session here.

    That of a process that has ended is gone.
    """
    gateway = tree(gateway_pid)
    found = {"gateway": cpu_s(gateway_pid), "Python": time.process_time(), "JVM": 0.0}
    for child in psutil.Process().children(recursive=True):
        with suppress(OSError, psutil.NoSuchProcess):
            if child.pid not in gateway:
                part = "JVM" if child.name() == "java" else "Python"
                found[part] += time.clock_gettime((~child.pid << 3) | CPU_CLOCK)
    return found


def memory(pid: int) -> Memory:
    """Memory that is there now."""
    anonymous = resident = 0.0
    for one in tree(pid):
        text = Path(f"/proc/{one}/smaps_rollup").read_text()
        anonymous += _mib(text, "Anonymous")
        resident += _mib(text, "Rss")
    return Memory(anonymous, resident - anonymous)


def _mib(text: str, name: str) -> float:
    found = re.search(rf"^{name}:\s*(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) / KIB_A_MIB
