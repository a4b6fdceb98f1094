"""The thread in which an index works: it may wait for the disk, the loop may not."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

import structlog

from ropeway.common.clock import now_ms
from ropeway.storage import directories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Concatenate

    from ropeway.gateway.node.rocks import Rocks


P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X", bound="Rocks")

log = structlog.get_logger(__name__)


class IndexLostError(Exception):
    """The index cannot be used now; it is to be made again."""


class Rebuild:
    """When an index was last made again from the log, and how long that took."""

    def __init__(self) -> None:
        self.ended_ms = 0
        """In milliseconds since 1970; 0 where it was not, since the node runs."""
        self.took_ms = 0
        self._began_s: float | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it has begun, and not ended."""
        return self._began_s is not None

    def begin(self) -> None:
        """Note that the index has nothing; one that is under way goes on."""
        if self._began_s is None:
            self._began_s = time.monotonic()

    def end(self) -> None:
        """Note that the index has all that the log has, if it was being made."""
        if self._began_s is not None:
            self.took_ms = round((time.monotonic() - self._began_s) * 1000)
            self.ended_ms = now_ms()
            self._began_s = None


class IndexThread(Generic[X]):
    """An index, and the thread that works on it.

    Args:
        name: What it is an index of, for people.
        kind: Opens it.
        directory: Where it is.
        on_lost: Called when `lost` is set.
    """

    def __init__(
        self,
        name: str,
        kind: type[X],
        directory: Path,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self.rebuild = Rebuild()
        self.lost = asyncio.Event()
        """Set when a call has failed: the index is to be opened again, anew."""
        self._kind = kind
        self._directory = directory
        self._on_lost = on_lost
        self._executor: ThreadPoolExecutor | None = None
        self._index: X | None = None

    async def open(self, *, anew: bool = False) -> None:
        """Open the index, unless it is open.

        Args:
            anew: Forget all that it has.

        Raises:
            IndexLostError: The directory cannot be used.
        """
        self.lost.clear()
        if anew:
            self.rebuild.begin()
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, f"{self.name}-index")
        await self._call(self._open, anew)

    def _open(self, anew: bool) -> None:
        if anew:
            self._close()
        if self._index is None:
            self._index = self._kind.open(self._directory, anew=anew)

    async def run(
        self,
        work: Callable[Concatenate[X, P], R],
        *args: P.args,
        **more: P.kwargs,
    ) -> R:
        """Have the thread call one of the index's methods.

        Raises:
            IndexLostError: The index is damaged or closed, or the disk refuses.
        """
        index = self._index
        if index is None:
            raise IndexLostError(f"the index of {self.name} is closed")
        try:
            return await self._call(lambda: work(index, *args, **more))
        except IndexLostError:
            self.lost.set()
            self._on_lost()
            raise

    async def _call(self, work: Callable[..., R], *args: object) -> R:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._executor, work, *args)
        except Exception as error:
            # RocksDB's errors have no class of their own in Python.
            raise IndexLostError(f"{type(error).__name__}: {error}") from error

    def size_bytes(self) -> int:
        """The bytes of its files."""
        return directories.size_bytes(self._directory)

    async def close(self) -> None:
        """Close the index. Twice is fine, and so is opening it again."""
        executor, self._executor = self._executor, None
        if executor is None:
            return
        try:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(executor, self._close)
        except Exception as error:  # noqa: BLE001 - as above
            log.warning("index closed badly", of=self.name, reason=str(error))
        executor.shutdown()

    def _close(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            index.close()
