"""Every change of a file that compaction makes: a few steps, of which any may fail.

So a test can end the process, as it were, before any of them.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from ropeway.storage import directories, private

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Buffer = bytes | bytearray | memoryview
_PIECES = 512
"""What one `writev` may take everywhere is 1,024."""


class Disk:
    """Changes files. Any thread may call it."""

    def make_directory(self, path: Path) -> None:
        """Make a directory and those above it, their names durable."""
        directories.make_directory(path)

    def create(self, path: Path) -> int:
        """Make a file anew, and open it for writing."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, private.FILE)

    def append(self, descriptor: int, pieces: Sequence[Buffer]) -> None:
        """Write pieces one after the other, wholly."""
        for at in range(0, len(pieces), _PIECES):
            some = pieces[at : at + _PIECES]
            wanted = sum(map(len, some))
            done = os.writev(descriptor, some)
            if done < wanted:
                rest = memoryview(b"".join(some))
                while done < wanted:
                    done += os.write(descriptor, rest[done:])

    def sync(self, descriptor: int) -> None:
        """Make a file's bytes durable."""
        os.fsync(descriptor)

    def replace(self, new: Path, path: Path) -> None:
        """Give a file the name of another one, which is gone then."""
        new.replace(path)

    def sync_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""
        directories.sync_directory(path)

    def unlink(self, path: Path) -> None:
        """Delete a file that may be gone already."""
        path.unlink(missing_ok=True)

    def remove_directory(self, path: Path) -> None:
        """Delete a directory that has no others within, and its files."""
        with contextlib.suppress(FileNotFoundError):
            for one in path.iterdir():
                self.unlink(one)
            path.rmdir()

    def put(self, path: Path, pieces: Sequence[Buffer]) -> None:
        """Make a file that is there whole or not at all, also after a power cut."""
        new = path.with_name(path.name + ".new")
        descriptor = self.create(new)
        try:
            self.append(descriptor, pieces)
            self.sync(descriptor)
        finally:
            os.close(descriptor)
        self.replace(new, path)
        self.sync_directory(path.parent)
