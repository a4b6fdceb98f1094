"""Disks of a test's own: full ones, and ones that cannot be written.

Each is a file system in memory that one server process has mounted for itself, in a
mount namespace of its own: when the process ends, nothing is left of it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.system.ropeway import Ropeway

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOUNT = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"'


@functools.cache
def can_mount() -> bool:
    """Whether this user may mount in a namespace of its own."""
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        check=False,
        capture_output=True,
    )
    return tried.returncode == 0


needs_mount = pytest.mark.skipif(
    not can_mount(), reason="mounting a disk for a test needs root"
)


class OnSmallDisk:
    """A node whose data is on a disk of its own, of so many MiB.

    The disk lives as long as the node's process.
    """

    def __init__(
        self, directory: Path, mebibytes: int, options: Iterable[str] = ()
    ) -> None:
        self.data = directory / "data"
        self.data.mkdir(parents=True)
        size = f"{mebibytes}m"
        mounted = ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", size, str(self.data)]
        self.node = Ropeway(
            directory, options=tuple(options), python=(*mounted, sys.executable)
        )

    def seen(self) -> Path:
        """The disk, as the node sees it."""
        return Path(f"/proc/{self.node.broker_pid}/root{self.data}")

    @contextlib.contextmanager
    def filled(self) -> Iterator[None]:
        """Take all that is free, as long as the block lasts."""
        filler = self.seen() / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
        assert os.statvfs(filler).f_bavail == 0
        yield
        filler.unlink()
