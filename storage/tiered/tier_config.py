"""What can be set about tiered storage, each with its unit and its reason."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ropeway.storage.sealed.compression import Compression

MIB = 1024 * 1024

BLOCK_BYTES = MIB
"""Records of a segment that are fetched and checked at once."""

SCAN_BYTES = 2 * MIB
"""What is read of the log at once: little enough to be in the processor's cache when it
is copied."""

MAX_RECORDS = 1 << 18
"""Of one segment, so that its index is no larger than 4 MiB."""

ReadLevel = Literal["DISABLE", "NOT_IN_DISK", "NOT_IN_MEM", "FORCE"]
"""RocketMQ's words for when records are read from the tier: never; what the log no
longer has; also what it would have to get from the disk; all that the tier has."""


class TieredSettings(Struct, frozen=True, kw_only=True):
    """Settings of the tier of one log."""

    level: ReadLevel = "NOT_IN_DISK"
    commit_records: int = 65_536
    """Records of one partition that make a segment at once."""
    commit_bytes: int = 16 * MIB
    """Likewise bytes. An object store takes whole objects, so this is more than the
    4 MiB that RocketMQ appends to a file."""
    commit_ms: int = 60_000
    """Records are in the tier so long after they were written, or sooner."""
    segment_bytes: int = 64 * MIB
    """Small neighbours are put together, to no more than so many."""
    merge_count: int = 16
    """So many small neighbours are put together in any case."""
    buffer_bytes: int = 64 * MIB
    """Memory for records that wait for their segment."""
    upload_bytes_per_s: int | None = None
    """Uploads are no faster; None without limit."""
    lag_bytes: int = 1024 * MIB
    """What was written, and not read for upload yet, may be so much while the node is
    busy; more is uploaded without regard to that."""
    uploads: int = 4
    """Segments that are uploaded at the same time."""
    retention_ms: int | None = 30 * 24 * 3600 * 1000
    """How long segments are kept, where a topic does not say; None for ever."""
    compression: Compression = "none"
    cache_bytes: int = 64 * MIB
    """Memory for what was fetched."""
    read_ahead_bytes: int = 16 * MIB
    """How far ahead of who reads on from block to block (RocketMQ: 16 MiB)."""
    fetches: int = 8
    """Requests to the provider that readers may have on their way."""
    backfill: bool = False
    """Begin with what the log has already, not with what is written from now on."""
    on_damage: Literal["refuse", "skip"] = "refuse"
    """What to do where the metadata are lost, and a listing lacks messages that the log
    has deleted."""
    poll_ms: int = 500
    """How often the log is looked at for what is new."""
    expire_every_ms: int = 60_000

    def __post_init__(self) -> None:
        """Refuse what cannot work, in words."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise ValueError(f"{name} is {value}; allowed: 1 or more")
        if self.cache_bytes < 4 * BLOCK_BYTES:
            raise ValueError(
                f"cache_bytes is {self.cache_bytes}; allowed: {4 * BLOCK_BYTES} or more"
            )
