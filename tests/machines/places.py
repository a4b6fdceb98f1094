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
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILLER = "filler"

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


def on_small_disk(directory: Path, mebibytes: int) -> tuple[str, ...]:
    """What runs a command with a disk of so many MiB mounted at a directory."""
    directory.mkdir(parents=True)
    words = "unshare", "--mount", "sh", "-c", _MOUNT
    return (*words, "sh", f"{mebibytes}m", str(directory))


def seen_by(pid: int, directory: Path) -> Path:
    """A directory as a process sees it, whatever it has mounted there."""
    return Path(f"/proc/{pid}/root{directory}")


@contextlib.contextmanager
def filled(disk: Path, share: float = 1.0) -> Iterator[None]:
    """Take so much of a disk that this share of it is used, as long as the block lasts.

    Args:
        disk: the directory where it is mounted.
        share: of its size, from 0 to 1; what is used already counts.
    """
    _fill(disk, share)
    yield
    (disk / FILLER).unlink()


def _fill(disk: Path, share: float = 1.0) -> None:
    with (disk / FILLER).open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while _used(disk) + size / _size(disk) <= share:
                    file.write(bytes(size))


def _size(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_blocks * found.f_frsize


def _used(disk: Path) -> float:
    found = os.statvfs(disk)
    return 1 - found.f_bavail / found.f_blocks


def _is_full(disk: Path) -> bool:
    """Fill it again: a node may have deleted a file of its own meanwhile."""
    _fill(disk)
    return os.statvfs(disk).f_bavail == 0


class OnSmallDisk:
    """A node whose data is on a disk of its own, of so many MiB.

    The disk lives as long as the node's process.
    """

    def __init__(
        self, directory: Path, mebibytes: int, options: Iterable[str] = ()
    ) -> None:
        self.data = directory / "data"
        mounted = on_small_disk(self.data, mebibytes)
        self.node = Ropeway(
            directory, options=tuple(options), python=(*mounted, sys.executable)
        )

    @contextlib.contextmanager
    def filled(self) -> Iterator[None]:
        """Take all that is free, as long as the block lasts."""
        disk = seen_by(self.node.broker_pid, self.data)
        with filled(disk):
            until(functools.partial(_is_full, disk))
            yield
