"""Directories and files that their owner alone may read, whatever the umask is.

A directory of mode 0700 keeps everybody else from all that is in it, so what makes
directories of its own needs nothing more; a file beside those of others needs its own.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import structlog

from ropeway.common.reasons import reason_of
from ropeway.storage.directories import MODE, make_directory

if TYPE_CHECKING:
    from pathlib import Path

log = structlog.get_logger(__name__)

FILE = 0o600
_OTHERS = stat.S_IRWXO


def directory(path: Path) -> None:
    """Make a directory, or take an existing one from others than its owner and group.

    Those above that are missing are made likewise. What a group may do to an existing
    one stays, for only an administrator gives it something without others.

    Raises:
        OSError: It cannot be made, or is none.
    """
    make_directory(path)
    narrow(path)


def root(path: Path) -> None:
    """Make the directory in which all others are, or take an empty one from others.

    One with anything in it stays as it is, for it may be anybody's home; what is made
    in it is narrowed by whoever makes it.

    Raises:
        OSError: It cannot be made, or is none.
    """
    if not (path.is_dir() and any(path.iterdir())):
        directory(path)


def file(path: Path) -> None:
    """Make an empty file where there is none, or take it from others, likewise.

    Raises:
        OSError: It cannot be made.
    """
    try:
        # Not one that is there: SQLite loses its locks where anybody closes its file.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))
    except FileExistsError:
        narrow(path, FILE)


def database(path: Path) -> None:
    """`file`, in a `root`, and what SQLite keeps beside it: that has the file's mode.

    Raises:
        OSError: It cannot be made.
    """
    root(path.parent)
    file(path)
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        narrow(beside, FILE)


def opener(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=...)`; one that is made is its owner's alone.

    Raises:
        OSError: It cannot be opened.
    """
    return os.open(path, flags, FILE)


def narrow(path: Path, mode: int = MODE) -> None:
    """Take what is there from others than its owner and group; the log says so."""
    try:
        found = stat.S_IMODE(path.stat().st_mode)
        if not found & _OTHERS:
            return
        path.chmod(mode)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning(
            "others can read what is kept",
            path=str(path),
            mode=f"{found:04o}",
            allowed=f"{mode:04o}",
            reason=reason_of(error),
        )
    else:
        log.info(
            "others can no longer read what is kept",
            path=str(path),
            mode_was=f"{found:04o}",
            mode=f"{mode:04o}",
        )
