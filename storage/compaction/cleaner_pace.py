"""How quickly compaction goes: a share of the loop's time, and bytes a second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST_S = 0.001
"""What the loop's clock can wait."""


class StoppedError(Exception):
    """Compaction is to end; nothing has changed but left-over files."""


class CleanerPace:
    """Makes way for others between two pieces of work.

    Args:
        share: The most of the loop's time that the work takes.
        bytes_per_s: The most that it reads and writes; None without limit.
        clock: Seconds.
    """

    def __init__(
        self,
        share: float,
        bytes_per_s: int | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._rest_of_work = 1 / share - 1
        self._bytes_per_s = bytes_per_s
        self._clock = clock
        self._owed_s = 0.0
        self._began = clock()
        self.stopped = False
        """Set, it ends the work at its next rest."""

    def begin(self) -> None:
        """Work begins now."""
        self._began = self._clock()

    async def rest(self, used_bytes: int = 0) -> None:
        """Work has been done for a while: wait for as long as is due; begin anew.

        Raises:
            StoppedError: There is to be no more work.
        """
        if self.stopped:
            raise StoppedError
        worked_s = self._clock() - self._began
        owed_s = worked_s * self._rest_of_work
        if self._bytes_per_s is not None:
            owed_s = max(owed_s, used_bytes / self._bytes_per_s - worked_s)
        self._owed_s += owed_s
        if self._owed_s >= _LEAST_S:
            began = self._clock()
            await asyncio.sleep(self._owed_s)
            self._owed_s = min(self._owed_s - (self._clock() - began), 0.0)
        else:
            await asyncio.sleep(0)
        self.begin()
