"""What Linux can, and how the same is done on systems that cannot.

Nothing else in these packages calls what not every POSIX system has; type checkers see
to it, which are asked for macOS, too. Where a call is missing, messages are as safe;
what is lost is said with each function.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time

_ZEROS = bytes(1 << 20)
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_WILL_NEED: int = getattr(os, "POSIX_FADV_WILLNEED", 0)


def allocate(descriptor: int, size: int) -> None:
    """Set aside a file's bytes up to a size, so that a write there finds room.

    What the file has stays. Without posix_fallocate zeros are written, which takes as
    long as the disk needs for them.

    Raises:
        OSError: There is no room; the file may be longer than before.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    place = os.fstat(descriptor).st_size
    while place < size:
        place += os.pwrite(descriptor, _ZEROS[: size - place], place)


def sync_data(descriptor: int) -> None:
    """Return once a file's bytes are on the disk, and as much of its size as they need.

    macOS's fsync leaves them in the disk's own cache; it has another call for this.

    Raises:
        OSError: The disk did not take them.
    """
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def will_need(descriptor: int, place: int, size: int) -> None:
    """Have a part of a file read ahead; elsewhere it is read when it is asked for.

    Raises:
        OSError: The disk failed.
    """
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, place, size, _WILL_NEED)


def read_resident(descriptor: int, buffer: bytearray, place: int) -> bool:
    """Fill a buffer from a file, if all of it is in memory; without waiting for a disk.

    Returns:
        Whether it is filled. False, too, where the system cannot tell: then a thread
        reads it, as if it were on the disk.
    """
    if not hasattr(os, "RWF_NOWAIT"):
        return False
    try:
        return os.preadv(descriptor, [buffer], place, os.RWF_NOWAIT) == len(buffer)
    except OSError:  # not in memory, or a file system that cannot tell
        return False


def boot_ns() -> int:
    """Nanoseconds since the machine was started, also while it slept.

    All processes of a machine have the same, and nobody sets it.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    # macOS: this goes on while it sleeps, as Linux's does not.
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def boot_id() -> str:
    """What the system calls the time since the machine was started; "" if it is closed.

    Source: random(4) of Linux; `kern.bootsessionuuid` in macOS's sysctl.
    """
    try:
        if sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
            return subprocess.check_output(command, text=True).strip()  # noqa: S603 - ours
        with open(_BOOT_ID, encoding="ascii") as file:  # noqa: PTH123 - nothing more is imported here
            return file.read().strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
