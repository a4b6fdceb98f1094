"""Syncs in the background: what the kernel was given gets to the disk a little later.

The writer notes the segments that it wrote to. An interval after the first of them a
thread syncs them all, and the catalog with them.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, NamedTuple

from ropeway.common.system import sync_data

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

    from ropeway.storage.file.catalog import Catalog
    from ropeway.storage.file.segment import Segment


class WriterThreads(NamedTuple):
    """What waits for the disk, one call at a time each."""

    commit: ThreadPoolExecutor
    sync: ThreadPoolExecutor


class Syncer:
    """Syncs the segments of one log. Loop's thread only, but for `_sync_copies`."""

    __slots__ = (
        "_catalog",
        "_failed",
        "_interval_s",
        "_thread",
        "_timer",
        "durable",
        "unsynced",
    )

    def __init__(
        self,
        catalog: Catalog,
        thread: ThreadPoolExecutor,
        interval_ms: int,
        durable: int,
        failed: Callable[[OSError], None],
    ) -> None:
        self._catalog = catalog
        self._thread = thread
        self._interval_s = interval_ms / 1000
        self._failed = failed
        self._timer: asyncio.TimerHandle | None = None
        self.unsynced: dict[Segment, None] = {}
        """Those that were noted, in their order."""
        self.durable = durable
        """All before this position of the log is on the disk."""

    def note(self, segment: Segment) -> None:
        """Have a segment that was written to synced within the interval."""
        self.unsynced[segment] = None
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._interval_s, self._sync_later)

    def _sync_later(self) -> None:
        self._timer = None
        if self.unsynced:
            self.sync()

    def sync(self) -> asyncio.Future[None]:
        """Sync all that was noted; the future fails with OSError if the disk did."""
        segments = [*self.unsynced]
        self.unsynced.clear()
        end = segments[-1].end if segments else self.durable
        copies = [os.dup(one.descriptor) for one in segments if one.descriptor >= 0]
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, self._sync_copies, copies)
        future.add_done_callback(lambda done: self._synced(done, end))
        return future

    def _sync_copies(self, copies: list[int]) -> None:
        """Sync segments by descriptors of our own. In the syncer's thread."""
        try:
            self._catalog.sync()
            for copy in copies:
                sync_data(copy)
        finally:
            for copy in copies:
                os.close(copy)

    def _synced(self, done: asyncio.Future[None], end: int) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is None:
            self.durable = max(self.durable, end)
        elif isinstance(error, OSError):
            self._failed(error)

    def stop(self) -> None:
        """Forget the timer; nothing is written any more."""
        if self._timer is not None:
            self._timer.cancel()
