"""What this process has open, of one test alone."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def open_below(directory: Path) -> int:
    """How many descriptors are of files below a directory, deleted ones too.

    All that a process has would count what earlier tests have left, and what goes
    when Python looks for cycles.
    """
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        # The one with which the list is read is gone.
        with suppress(FileNotFoundError):
            count += descriptor.readlink().is_relative_to(directory.resolve())
    return count
