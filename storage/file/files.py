"""Descriptors for reading, a bounded number of them; used by the loop's thread only.

Threads get a duplicate of their own, so that closing one here never pulls a file
away from under a read.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class OpenFiles:
    """Open files by path; the one that was not used for longest is closed first."""

    __slots__ = ("_limit", "_open")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: OrderedDict[Path, int] = OrderedDict()

    def get(self, path: Path) -> int | None:
        """The descriptor of a file; None where it is not open."""
        descriptor = self._open.get(path)
        if descriptor is not None:
            self._open.move_to_end(path)
        return descriptor

    def keep(self, path: Path, descriptor: int) -> None:
        """Take over an open descriptor."""
        if path in self._open:
            os.close(descriptor)
            return
        self._open[path] = descriptor
        if len(self._open) > self._limit:
            _, oldest = self._open.popitem(last=False)
            os.close(oldest)

    def drop(self, path: Path) -> None:
        """Close a file that is going away."""
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def close(self) -> None:
        """Close all, and whatever is still handed in."""
        self._limit = 0
        while self._open:
            os.close(self._open.popitem()[1])
