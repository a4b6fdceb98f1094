"""What a partition that is open lets appends in by, whatever its entries are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import structlog

from ropeway.common.reasons import reason_of
from ropeway.storage.api import LogError

if TYPE_CHECKING:
    from collections.abc import Sequence

from ropeway.storage.api import Done, RecordParts

_log = structlog.get_logger()


class AppendPath(Protocol):
    """An open partition's appends on their way."""

    @property
    def next_offset(self) -> int:
        """What the next append will get, or, where others write, may get."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""

    @property
    def oldest_at(self) -> float:
        """Since when the oldest one is on its way; there must be one."""

    @property
    def is_shut_out(self) -> bool:
        """Whether Pulsar refuses what is on its way, and not only is late."""

    def append(self, records: Sequence[RecordParts], store_ms: int, done: Done) -> None:
        """Take records in; see `storage.api`."""

    async def drained(self) -> None:
        """Return when all that was appended before is stored.

        Raises:
            OutcomeUnknownError: It may or may not have been.
        """

    def give_up(self) -> None:
        """Answer all that is on its way, for Pulsar does not."""

    def fail(self, reason: str) -> None:
        """Answer all that is on its way, for it will never be acknowledged."""

    async def close(self) -> None:
        """Let Pulsar know that this is over."""


async def drain(ways: Sequence[AppendPath]) -> None:
    """Return when all that was appended to several before is stored.

    Raises:
        OutcomeUnknownError: Something may or may not have been.
    """
    waits = [one.drained() for one in ways if not one.is_idle]
    if waits:
        await asyncio.gather(*waits)


async def let_go(ways: Sequence[AppendPath], reason: str, timeout_s: float) -> None:
    """Close several, when what is on its way is stored, or the time is over."""
    try:
        async with asyncio.timeout(timeout_s):
            await drain(ways)
    except (TimeoutError, LogError) as error:
        _log.warning("appends were not acknowledged", reason=reason_of(error))
    for one in ways:
        one.fail(reason)
    await asyncio.gather(*(one.close() for one in ways))
