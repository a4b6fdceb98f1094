"""Opens something on a broker, and opens it again each time that it is lost."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator

from ropeway.storage.pulsar.errors import RETRYABLE, PulsarError

FIRST_DELAY_S = 0.05
LARGEST_DELAY_S = 2.0
"""A broker that comes back is found that soon; Pulsar's own clients wait up to 60 s.

What was open for longer held: when it is lost, the first try is at once again. A broker
that cannot write, because its bookies' disks are full, lets a producer in each time and
closes it at the first entry: without delays, a thousand times a second.
"""


def delays() -> Iterator[float]:
    """Seconds to wait before each further try: doubled, and never the same for all."""
    delay_s = FIRST_DELAY_S
    while True:
        yield delay_s * random.uniform(0.5, 1)  # noqa: S311 - spreads load, no secret
        delay_s = min(2 * delay_s, LARGEST_DELAY_S)


class Reopener:
    """Keeps something open: one try at a time, with back-off between.

    Args:
        open_once: one try.
        lost: called at most once, with the error that no further try can undo.
    """

    def __init__(
        self,
        open_once: Callable[[], Awaitable[None]],
        lost: Callable[[PulsarError], None],
    ) -> None:
        self._open_once = open_once
        self._lost = lost
        self._task: asyncio.Task[None] | None = None
        self._delays = delays()
        self._opened_at: float | None = None
        """When a try of `again` succeeded last."""

    async def first(self, within_s: float) -> None:
        """Open for the first time.

        Raises:
            PulsarError: it is refused, or did not succeed in time.
        """
        give_up = asyncio.get_running_loop().time() + within_s
        for delay_s in delays():
            try:
                await self._open_once()
            except RETRYABLE:
                if asyncio.get_running_loop().time() + delay_s > give_up:
                    raise
                await asyncio.sleep(delay_s)
            else:
                return

    def again(self) -> None:
        """Open again until it succeeds or is refused; does nothing while it tries."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._try())

    async def stop(self) -> None:
        """Try no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _try(self) -> None:
        now = asyncio.get_running_loop().time
        if self._opened_at is None or now() - self._opened_at > LARGEST_DELAY_S:
            self._delays = delays()
        else:
            await asyncio.sleep(next(self._delays))
        for delay_s in self._delays:
            try:
                await self._open_once()
            except RETRYABLE:
                await asyncio.sleep(delay_s)
            except PulsarError as error:
                self._lost(error)
                return
            else:
                self._opened_at = now()
                return
