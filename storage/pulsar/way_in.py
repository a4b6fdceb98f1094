"""What a partition that is open lets appends in by, whatever its entries are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.api import Done, RecordParts


class WayIn(Protocol):
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
