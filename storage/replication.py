"""The contract of logs that can be copied: all their records, in the order of writing.

A copy goes over a log once, from a position on, and needs of each record what its own
indexes need: where it belongs, its tag hash, its store time and its keys' hashes. It
comes as the log has it, many records at once, so that copying costs little a record.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, Protocol

ENTRY = Struct("<IIiq")
"""One record of a run: a number that is the log's own, size, tag hash, store time in
milliseconds."""

KEY_BYTES = 8
"""One key of a run: its hash in the upper 32 bits, in the lower ones those of its
record's offset."""


class Run(NamedTuple):
    """Records of one partition, in the order of their offsets and without a gap."""

    topic: str
    number: int
    """Of the partition."""
    identity: int
    """As `Followed.identity` has it."""
    base_offset: int
    records: int
    data: bytes
    """The records, back to back."""
    entries: bytes
    """`ENTRY` of each."""
    keys: bytes
    """By ascending offsets. A key's hash is `crc32(key, crc32(topic))`."""


class Stretch(NamedTuple):
    """What was written next."""

    position: int
    """Where the next stretch begins."""
    written_ms: int
    """When the newest of it was written, by the clock of who wrote it; 0 if empty."""
    runs: list[Run]


class Followed(Protocol):
    """A log that can be copied while it is written to. One event loop's thread."""

    async def follow(self, position: int, max_bytes: int) -> Stretch:
        """What was written from a position on, as far as a power cut would leave it.

        Args:
            position: One that a stretch has named, or 0. What retention has dropped
                meanwhile is passed over.
            max_bytes: About how much to read at once.

        Raises:
            LogDamagedError: What is stored there is not what was written.
            LogUnavailableError: The storage did not answer.
        """

    def identity(self, topic: str, number: int) -> int:
        """A number of 64 bits that no other partition has, nor this one made again.

        Raises:
            NoSuchPartitionError: There is none.
        """

    @property
    def written_to(self) -> int:
        """The position at which the next record will be written."""
