"""Takes away what Linux has and other POSIX systems lack; a plugin for pytest."""

from __future__ import annotations

import io
import os
import time
from typing import Any

NAMES = [
    *((os, name) for name in ("posix_fallocate", "posix_fadvise", "fdatasync")),
    *((os, name) for name in ("POSIX_FADV_WILLNEED", "RWF_NOWAIT")),
    (time, "CLOCK_BOOTTIME"),
]
_open = io.open


def _without_proc(file: Any, *arguments: Any, **options: Any) -> Any:
    if not isinstance(file, int) and os.fspath(file).startswith("/proc/"):
        raise FileNotFoundError(file)
    return _open(file, *arguments, **options)


for module, name in NAMES:
    delattr(module, name)
io.open = _without_proc
