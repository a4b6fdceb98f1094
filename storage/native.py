"""Messages as native clients of the storage see them, and what converts them.

A log that shares a topic with such clients keeps their form of a message, and makes
stored RocketMQ messages of it when it reads. It knows neither form's meaning: the app
gives it a `Converter`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from ropeway.storage.api import RecordParts


class NativeMessage(Struct, frozen=True, gc=False):
    """A message of a native client, or for one."""

    body: bytes | memoryview
    properties: Mapping[str, str]
    key: str | None = None
    """What native clients route, order and compact by."""
    event_ms: int = 0
    """When it was made, as the application says; 0 where it does not."""


class NativePosition(Struct, frozen=True, gc=False):
    """Where a native message stands."""

    topic: str
    number: int
    """Of the partition."""
    offset: int
    stored_ms: int
    unique: str
    """32 hexadecimal digits that no other message of this storage has."""


class Converter(Protocol):
    """Two ways between native messages and records; neither ever fails."""

    def record(self, message: NativeMessage, place: NativePosition) -> RecordParts:
        """The record that a native message is for RocketMQ's clients."""

    def native(self, records: Sequence[bytes]) -> list[NativeMessage]:
        """What native clients see of records that are appended as one entry."""
