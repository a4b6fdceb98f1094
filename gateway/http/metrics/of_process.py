"""Metrics of the process, as the kernel has them, under the names that all know."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ropeway.common.system import boot_ns

if TYPE_CHECKING:
    from ropeway.gateway.http.metrics.text import Page

_SELF = Path("/proc/self")
_START_FIELD = 19
"""`starttime` in /proc/self/stat, counted behind the process' name."""


def _started_s() -> float:
    """When the process began, in seconds since 1970; now, where /proc is closed."""
    try:
        stat = (_SELF / "stat").read_text("ascii")
    except OSError:
        return time.time()
    # The name may have spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    ticks = int(fields[_START_FIELD])
    up_s = boot_ns() / 1e9
    return time.time() - up_s + ticks / os.sysconf("SC_CLK_TCK")


STARTED_S = _started_s()
"""When this process began, in seconds since 1970."""


def write(page: Page) -> None:
    """Add them to a page; without what a closed /proc does not tell."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    page.add("process_cpu_seconds_total", used.ru_utime + used.ru_stime)
    page.add("process_start_time_seconds", round(STARTED_S, 2))
    page.add("process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    try:
        pages, resident = map(int, (_SELF / "statm").read_text("ascii").split()[:2])
        open_files = sum(1 for _ in (_SELF / "fd").iterdir())
    except OSError:
        return
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    page.add("process_resident_memory_bytes", resident * page_bytes)
    page.add("process_virtual_memory_bytes", pages * page_bytes)
    page.add("process_open_fds", open_files)
