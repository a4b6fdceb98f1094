"""A provider in a directory: on a disk of this machine, or one that is mounted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

from ropeway.common.reasons import reason_of
from ropeway.storage import private
from ropeway.storage.directories import make_directory, sync_directory
from ropeway.storage.tiered.api import ObjectMissingError, ProviderError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    T = TypeVar("T")

THREADS = 8
"""Calls that wait for the disk at the same time."""
_NEW = ".new"
"""Behind the name of a file that is not whole yet, and a random word."""


class PosixProvider:
    """Objects as files."""

    def __init__(self, directory: Path) -> None:
        self.label = f"file://{directory}"
        self._directory = directory
        self._threads = ThreadPoolExecutor(THREADS, "tier-files")
        self._making = Lock()
        """So that a directory that is there has a durable name, for all threads."""

    async def put(self, name: str, pieces: Sequence[bytes | memoryview]) -> None:
        """Keep an object; see `storage.tiered.api`."""
        await self._run(name, lambda: self._put(self._directory / name, pieces))

    async def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Bytes of an object; see `storage.tiered.api`."""
        path = self._directory / name
        return await self._run(name, lambda: _get(path, start, size))

    async def names(self, prefix: str) -> AsyncIterator[tuple[str, int]]:
        """All objects below a prefix; see `storage.tiered.api`."""
        for found in await self._run(prefix, lambda: self._names(prefix)):
            yield found

    async def delete(self, name: str) -> None:
        """Take an object away; see `storage.tiered.api`."""
        path = self._directory / name
        await self._run(name, lambda: path.unlink(missing_ok=True))

    async def close(self) -> None:
        """End the threads."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)

    async def _run(self, name: str, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, work)
        except FileNotFoundError as error:
            raise ObjectMissingError(f"{self.label} has no object {name}") from error
        except OSError as error:
            raise ProviderError(
                f"{self.label}, object {name}: {reason_of(error)}; check the "
                "directory's file system, its free space and permissions"
            ) from error

    def _put(self, path: Path, pieces: Sequence[bytes | memoryview]) -> None:
        with self._making:
            make_directory(path.parent)
        new = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_NEW}")
        try:
            with open(new, "wb", buffering=0, opener=private.opener) as file:
                for piece in pieces:
                    view = memoryview(piece)
                    while view:
                        view = view[file.write(view) :]
                os.fsync(file.fileno())
            new.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise
        sync_directory(path.parent)

    def _names(self, prefix: str) -> list[tuple[str, int]]:
        found = []
        for at, _, files in os.walk(self._directory / prefix):
            for file in files:
                path = Path(at, file)
                if path.suffix != _NEW:
                    with contextlib.suppress(FileNotFoundError):
                        name = path.relative_to(self._directory).as_posix()
                        found.append((name, path.stat().st_size))
        return found


def _get(path: Path, start: int, size: int | None) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if size is None:
            size = max(os.fstat(descriptor).st_size - start, 0)
        data = os.pread(descriptor, size, start)
        while len(data) < size and (
            more := os.pread(descriptor, size - len(data), start + len(data))
        ):
            data += more
        return data
    finally:
        os.close(descriptor)


def open_provider(url: str) -> PosixProvider:
    """The directory of a URL `file:///path`.

    Raises:
        ValueError: It names a host, or no absolute path.
    """
    parts = urlsplit(url)
    if parts.netloc or not parts.path.startswith("/"):
        raise ValueError(f"{url}; allowed: file:///absolute/path")
    return PosixProvider(Path(unquote(parts.path)))
