"""The partitions of a log that several nodes share: held by the node that leads."""

from __future__ import annotations

from typing import Protocol


class SharedLog(Protocol):
    """A log of whose partitions one node at a time is the writer."""

    def open_early(self) -> None:
        """Begin to open all partitions that were asked for."""

    async def release(self) -> None:
        """Give up all partitions."""


class Held:
    """Takes a broker's partitions when its node begins to lead, and lets go of them.

    A duty behind the topics, which ask for their partitions. It does not wait: a
    request that comes early opens what it needs by itself.

    Args:
        log: Whose partitions.
    """

    def __init__(self, log: SharedLog) -> None:
        self._log = log

    async def take_over(self) -> None:
        """Begin to open partitions, before requests want them."""
        self._log.open_early()

    async def give_up(self) -> None:
        """Let go, so that the next leader is in nobody's way, nor anybody in its."""
        await self._log.release()
