"""The lock that keeps a directory with one process."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from ropeway.common.reasons import reason_of
from ropeway.storage import private
from ropeway.storage.api import LogError, LogInUseError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "lock"


def take(directory: Path) -> int:
    """Make the directory where it is missing, and lock it.

    Returns:
        A descriptor that holds the lock until it is closed, or the process ends.

    Raises:
        LogInUseError: Another process has it; names its process id.
        LogError: It is no directory, or this process may not write there.
    """
    try:
        private.directory(directory)
        descriptor = os.open(directory / NAME, os.O_RDWR | os.O_CREAT, private.FILE)
    except (FileExistsError, NotADirectoryError) as error:
        raise LogError(f"{directory} is not a directory; a log needs one") from error
    except OSError as error:
        raise LogError(
            f"cannot write to {directory}: {reason_of(error)}; a log needs a directory "
            "that its process may write to"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise LogInUseError(
            f"{directory} is in use by process {holder or 'unknown'}; "
            "one directory serves one process"
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
