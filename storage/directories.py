"""Directories that a power cut does not take: no sync of a file keeps its name."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

MODE = 0o700
"""Of directories that are made: what is kept is for its owner alone."""


def make_directory(path: Path) -> None:
    """Make a directory and those above it where they are missing, names durable.

    Raises:
        FileExistsError: It is a file.
        OSError: The disk refused.
    """
    missing = []
    above = path
    while not above.is_dir():
        missing.append(above)
        above = above.parent
    for one in reversed(missing):
        one.mkdir(MODE, exist_ok=True)
        sync_directory(one.parent)


def size_bytes(path: Path) -> int:
    """Add up the bytes of all files in a directory and below it; 0 where it is missing.

    Files may come and go meanwhile, as a log's segments and RocksDB's tables do; one
    that goes does not count.
    """
    found = 0
    for at, _, files in os.walk(path):
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                found += Path(at, file).stat().st_size
    return found


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable.

    Raises:
        OSError: The disk refused.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
