"""Where the `ropeway` command begins: Ctrl-C during imports ends it without a word."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def main() -> None:
    """Run the command."""
    with killable():
        from ropeway.gateway.cli.main import main as command  # noqa: PLC0415 - see above

    command(prog_name="ropeway")
