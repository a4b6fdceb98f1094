"""Imports what a process of ours runs: quickly, and Ctrl-C ends it at once.

It ends quickly, too.
"""

from __future__ import annotations

import atexit
import gc
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNUSED = ("rich", "greenlet")
"""What structlog imports where it is there, for kinds of logs that nobody here writes:
lines in colour, and state that is a greenlet's."""

# Python looks for cycles among all that is left as it ends, a fifth of the time of a
# start and a stop; nobody needs the memory any more.
atexit.register(gc.freeze)


@contextmanager
def killable() -> Iterator[None]:
    """Let Ctrl-C end the process at once while it imports, and not by a traceback."""
    if threading.current_thread() is not threading.main_thread():
        # Only that one may set signals.
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def quickly() -> Iterator[None]:
    """Import in the block without looking for garbage, and structlog without extras.

    There is no garbage, as what is imported stays; and Python would look at all of it
    again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    hidden = [name for name in _UNUSED if name not in sys.modules]
    # That is how Python is told that there is none.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
        if was_enabled:
            gc.enable()
