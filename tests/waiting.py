"""Waits for conditions, not for seconds, in tests that have no event loop."""

import time
from collections.abc import Callable
from pathlib import Path

WAIT_S = 90
LOOK_S = 0.05
"""How soon a condition is looked at again: most ask a server over a new connection."""
LATER = 40
"""The part of the time waited so far that it is left alone for then, where that is
longer."""


def until(condition: Callable[[], object], seconds: float = WAIT_S) -> None:
    """Wait until a condition holds."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, f"not in {seconds:g} s"
        time.sleep(max(LOOK_S, waited / LATER))


def is_asleep(pid: int) -> bool:
    """Whether a process waits for something; see proc_pid_stat(5)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
