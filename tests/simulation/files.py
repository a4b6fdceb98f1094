"""Files: calls of the operating system go through here, and a disk is kept beside them.

The files are real, in memory; what the simulated process reads is what it wrote. Each
change of those that Python code writes also goes to the `Disk` of `tests/power`, which
knows what was synced. After a power loss real files are made of what that disk kept.

What is not seen here: SQLite's own files, of which all that was committed is kept (its
databases are in WAL mode with `synchronous = FULL`, and `tests/power` cuts them at
every sync); RocksDB's, see `rocks`.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import sqlite3
from typing import TYPE_CHECKING, Any

from ropeway.storage.file.segment import SUFFIX
from tests.power import disk as power
from tests.simulation.loop import PROCESS, DeadProcessError, Process
from tests.simulation.machine import SQLITE, Machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.threads import Threads

REAL = {
    name: getattr(os, name)
    for name in (
        *("open", "close", "dup", "write", "writev", "pwrite", "pwritev", "pread"),
        *("preadv", "ftruncate", "posix_fallocate", "fsync", "fdatasync", "unlink"),
        *("replace", "rename", "mkdir", "posix_fadvise"),
    )
}
"""The operating system's own calls."""
_IO_OPEN = io.open
_CONNECT = sqlite3.connect

CALL_S = 5e-6
"""What a call takes that the page cache answers."""
SYNC_S = (100e-6, 4e-3)
SLOW = 0.01
SLOW_S = (0.02, 0.4)
"""How many syncs and writes take longer, and how long."""


class OpenFile:
    """What a descriptor of a simulated process is of."""

    def __init__(self, machine: Machine, process: Process, path: str, fd: int) -> None:
        found = os.fstat(fd)
        self.machine = machine
        self.process = process
        self.path = path
        self.inode = found.st_ino


class Files:
    """The operating system's calls about files, for all machines.

    Args:
        threads: What waits for a disk.
        machines: Those there are; more may come.
    """

    def __init__(self, threads: Threads, machines: list[Machine]) -> None:
        self.threads = threads
        self.machines = machines
        self._open: dict[int, OpenFile] = {}
        self._buffered: dict[int, OpenFile] = {}
        """Those that Python writes to from a buffer of its own, and closes unseen."""
        self._connections: list[tuple[Process, sqlite3.Connection]] = []
        self._unseen: dict[str, OpenFile] = {}
        """What Python writes to from a buffer of its own, and nobody has synced."""
        self.calls = 0
        self.syncs = 0

    def patches(self) -> dict[str, Callable[..., Any]]:
        """What takes the place of each function of `os`."""
        own = {name: getattr(self, f"_{name}") for name in REAL if name != "open"}
        return {"open": self._open_path, **own}

    # -- helpers

    def machine_of(self, path: Any) -> Machine | None:
        """Whose disk a path is on, where a simulated process asks."""
        if isinstance(path, int) or PROCESS.get() is None:
            return None
        text = os.fspath(path)
        if isinstance(text, str):
            for machine in self.machines:
                if text.startswith(machine.front) or text == str(machine.root):
                    return machine
        return None

    def alive(self) -> None:
        process = PROCESS.get()
        if process is not None and not process.alive:
            raise DeadProcessError

    def _wait(self, machine: Machine, range_s: tuple[float, float] | None) -> None:
        """Have a call take its time; a thread lets others go on meanwhile."""
        self.calls += 1
        if range_s is None:
            if self.threads.current() is not None:
                self.threads.pause(CALL_S)
                self.alive()
            return
        slow = machine.slow or machine.chance.random() < SLOW
        self.threads.pause(machine.chance.uniform(*(SLOW_S if slow else range_s)))
        self.alive()

    def _tell(
        self, op: str, file: OpenFile, number: int = 0, data: bytes = b""
    ) -> None:
        machine = file.machine
        event = power.Event(op, "", file.path, "", data, file.inode, number)
        machine.disk.apply(event)
        if op == "w" and file.path.endswith(SUFFIX):
            machine.unsynced.wrote(file.inode, machine.disk.number, data)
        elif op == "s":
            machine.unsynced.synced(file.inode, number)

    def _tell_names(
        self, machine: Machine, op: str, path: str, other: str = ""
    ) -> None:
        machine.disk.apply(power.Event(op, "", path, other, b"", 0, 0))

    def _changes(self, file: OpenFile) -> None:
        """Refuse a change where the disk is full."""
        if file.machine.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)

    # -- opening and closing

    def _make_open(self, machine: Machine, path: str, flags: int, mode: int) -> int:
        there = os.path.exists(path)  # noqa: PTH110 - a path is made for each call
        if flags & os.O_CREAT and not there and machine.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        fd: int = REAL["open"](path, flags, mode)
        process = PROCESS.get()
        assert process is not None
        file = self._open[fd] = OpenFile(machine, process, path, fd)
        if flags & os.O_CREAT and not there:
            self._tell("c", file)
        elif flags & os.O_TRUNC:
            self._tell("t", file, 0)
        return fd

    def _open_path(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        machine = self.machine_of(path)
        if machine is None or more:
            fd: int = REAL["open"](path, flags, mode, **more)
            return fd
        self.alive()
        return self._make_open(machine, os.fspath(path), flags, mode)

    def io_open(self, file: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        """Open as `io.open` does; what is written is seen once it is synced."""
        machine = self.machine_of(file)
        if machine is None or not set(mode) & set("wax+"):
            return _IO_OPEN(file, mode, *args, **more)
        self.alive()
        opened: list[int] = []

        def opener(path: str, flags: int) -> int:
            opened.append(self._make_open(machine, path, flags, 0o600))
            return opened[0]

        more["opener"] = opener
        found = _IO_OPEN(os.fspath(file), mode, *args, **more)
        written = self._buffered[opened[0]] = self._open.pop(opened[0])
        self._unseen[written.path] = written
        return found

    def _close(self, fd: int) -> None:
        file = self._open.get(fd)
        if file is not None:
            if not file.process.alive:
                return
            del self._open[fd]
        REAL["close"](fd)

    def _dup(self, fd: int) -> int:
        copy: int = REAL["dup"](fd)
        file = self._open.get(fd)
        self._open.pop(copy, None)
        if file is not None:
            self._open[copy] = file
        return copy

    # -- writing

    def _write_at(self, fd: int, data: bytes, offset: int) -> int:
        file = self._open.get(fd)
        if file is None:
            return int(REAL["pwrite"](fd, data, offset))
        self.alive()
        self._wait(file.machine, None)
        self._changes(file)
        chance = file.machine.chance
        if len(data) > 1 and chance.random() < 0.002:
            data = data[: chance.randrange(1, len(data))]
        done = int(REAL["pwrite"](fd, data, offset))
        self._tell("w", file, offset, data[:done])
        return done

    def _pwrite(self, fd: int, data: Any, offset: int) -> int:
        return self._write_at(fd, bytes(data), offset)

    def _pwritev(self, fd: int, pieces: Any, offset: int, flags: int = 0) -> int:
        if fd not in self._open:
            return int(REAL["pwritev"](fd, pieces, offset, flags))
        return self._write_at(fd, b"".join(pieces), offset)

    def _write(self, fd: int, data: Any) -> int:
        if fd not in self._open:
            return int(REAL["write"](fd, data))
        place = os.lseek(fd, 0, os.SEEK_CUR)
        done = self._write_at(fd, bytes(data), place)
        os.lseek(fd, place + done, os.SEEK_SET)
        return done

    def _writev(self, fd: int, pieces: Any) -> int:
        if fd not in self._open:
            return int(REAL["writev"](fd, pieces))
        return self._write(fd, b"".join(pieces))

    def _ftruncate(self, fd: int, size: int) -> None:
        file = self._open.get(fd)
        if file is not None:
            self.alive()
            self._wait(file.machine, None)
            self._tell("t", file, size)
        REAL["ftruncate"](fd, size)

    def _posix_fallocate(self, fd: int, offset: int, size: int) -> None:
        file = self._open.get(fd)
        if file is not None:
            self.alive()
            self._wait(file.machine, None)
            self._changes(file)
            self._tell("a", file, offset + size)
        REAL["posix_fallocate"](fd, offset, size)

    # -- reading

    def _pread(self, fd: int, size: int, offset: int) -> bytes:
        if file := self._open.get(fd):
            self.alive()
            self._wait(file.machine, None)
        return bytes(REAL["pread"](fd, size, offset))

    def _preadv(self, fd: int, buffers: Any, offset: int, flags: int = 0) -> int:
        if file := self._open.get(fd):
            self.alive()
            if flags & getattr(os, "RWF_NOWAIT", 0):
                if file.machine.chance.random() < 0.2:
                    raise BlockingIOError(errno.EAGAIN, "not in memory")
                flags = 0
        return int(REAL["preadv"](fd, buffers, offset, flags))

    def _posix_fadvise(self, *_: Any) -> None:
        """Nothing is read ahead."""

    # -- syncing

    def _sync(self, name: str, fd: int) -> None:
        file = self._open.get(fd)
        buffered = None if file is not None else self._buffered_of(fd)
        file = file or buffered
        if file is None:
            REAL[name](fd)
            return
        self.alive()
        if buffered is not None:
            self._note_whole(file)
        # What is written while it lasts it need not keep.
        to = file.machine.disk.number
        self._wait(file.machine, SYNC_S)
        if file.machine.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO), file.path)
        self.syncs += 1
        self._tell("s", file, to)

    def _buffered_of(self, fd: int) -> OpenFile | None:
        file = self._buffered.get(fd)
        if file is None or os.fstat(fd).st_ino != file.inode:
            return None
        return file

    def _note_whole(self, file: OpenFile) -> None:
        """Note what Python has written to a file since it was opened."""
        with _IO_OPEN(file.path, "rb") as whole:
            data = whole.read()
        self._unseen.pop(file.path, None)
        self._tell("t", file, 0)
        self._tell("w", file, 0, data)

    def _fsync(self, fd: int) -> None:
        self._sync("fsync", fd)

    def _fdatasync(self, fd: int) -> None:
        self._sync("fdatasync", fd)

    # -- names

    def _unlink(self, path: Any, **more: Any) -> None:
        machine = self.machine_of(path)
        if machine is None or more:
            REAL["unlink"](path, **more)
            return
        self.alive()
        self._wait(machine, None)
        REAL["unlink"](path)
        if not os.fspath(path).endswith(SQLITE):
            self._tell_names(machine, "u", os.fspath(path))

    def _replace(self, source: Any, target: Any, **more: Any) -> None:
        machine = self.machine_of(source)
        if machine is None or more:
            REAL["replace"](source, target, **more)
            return
        self.alive()
        self._wait(machine, None)
        if written := self._unseen.get(os.fspath(source)):
            self._note_whole(written)
        REAL["replace"](source, target)
        self._tell_names(machine, "r", os.fspath(source), os.fspath(target))

    _rename = _replace

    def _mkdir(self, path: Any, *args: Any, **more: Any) -> None:
        machine = self.machine_of(path)
        if machine is not None:
            self.alive()
        REAL["mkdir"](path, *args, **more)
        if machine is not None:
            self._tell_names(machine, "m", os.fspath(path))

    # -- SQLite, and the end of a process

    def connect(self, *args: Any, **more: Any) -> sqlite3.Connection:
        """Connect as `sqlite3.connect` does; a killed process lets go of it."""
        self.alive()
        connection = _CONNECT(*args, **more)
        process = PROCESS.get()
        if process is not None:
            self._connections.append((process, connection))
        return connection

    def killed(self, process: Process) -> None:
        """Let go of all that a dead process had; its descriptors stay taken."""
        nowhere = REAL["open"]("/dev/null", os.O_RDWR)
        for fd, file in self._open.items():
            if file.process is process:
                fcntl.flock(fd, fcntl.LOCK_UN)
                os.dup2(nowhere, fd)
        REAL["close"](nowhere)
        for owner, connection in self._connections:
            if owner is process:
                connection.close()
        self._connections = [one for one in self._connections if one[0] is not process]

    def close(self) -> None:
        """Close all that is left."""
        for fd in self._open:
            REAL["close"](fd)
        self._open.clear()
        for _, connection in self._connections:
            connection.close()
        self._connections.clear()
