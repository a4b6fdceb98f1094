"""The thread in which an index works: it may wait for the disk, the loop may not."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, ParamSpec, Protocol, TypeVar

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Concatenate


class Closable(Protocol):
    """Whatever has to be closed."""

    def close(self) -> None:
        """Release everything."""


C_co = TypeVar("C_co", bound=Closable, covariant=True)
P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X", bound=Closable)


class Opener(Protocol[C_co]):
    """Opens an index in a directory."""

    def __call__(self, directory: Path, *, anew: bool = False) -> C_co:
        """Open what is there, or, anew, forget it first."""


log = structlog.get_logger(__name__)


class IndexLostError(Exception):
    """The index cannot be used now; it is to be made again."""


class IndexThread(Generic[X]):
    """An index, and the thread that works on it.

    Args:
        name: What it is an index of, for people.
        opener: Opens it.
        directory: Where it is.
        on_lost: Called when a call has failed: the index is to be made again.
    """

    def __init__(
        self,
        name: str,
        opener: Opener[X],
        directory: Path,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self._opener = opener
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
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, f"{self.name}-index")
        await self._call(self._open, anew)

    def _open(self, anew: bool) -> None:
        if anew:
            self._close()
        if self._index is None:
            self._index = self._opener(self._directory, anew=anew)

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
            self._on_lost()
            raise

    async def _call(self, work: Callable[..., R], *args: object) -> R:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._executor, work, *args)
        except Exception as error:
            # RocksDB's errors have no class of their own in Python.
            raise IndexLostError(f"{type(error).__name__}: {error}") from error

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
