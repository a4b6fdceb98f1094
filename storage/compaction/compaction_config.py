"""What can be set about compaction, each with its unit and its reason."""

from __future__ import annotations

from msgspec import Struct

KIB = 1024
MIB = 1024 * KIB

MIN_MAP_BYTES = 1 * KIB
MIN_FILE_BYTES = 4 * KIB
MAX_FILE_BYTES = 2048 * MIB
"""Places within a file are unsigned 32-bit numbers."""


class CompactionSettings(Struct, frozen=True, kw_only=True):
    """Settings of one log's compaction."""

    dirty_ratio: float = 0.5
    """A partition is compacted when such a share of its records came after the last
    round (Kafka: min.cleanable.dirty.ratio, 0.5)."""
    min_lag_ms: int = 60_000
    """Younger records are left alone, so that who keeps up sees every change."""
    max_lag_ms: int = 3_600_000
    """A partition is compacted when a record has waited for so long. Well below any
    retention, which waits for compaction."""
    tombstone_ms: int = 24 * 3_600_000
    """How long a tombstone stays after the first round that met it (Kafka:
    delete.retention.ms, 24 h)."""
    keyless_ms: int | None = 72 * 3_600_000
    """How long a record without a key stays, as before the topic was compacted; None
    for ever."""
    map_bytes: int = 64 * MIB
    """Memory for the keys of one round; more keys take more rounds."""
    file_bytes: int = 128 * MIB
    """How large a file of compacted records grows."""
    share: float = 0.25
    """The most of the event loop's time that compaction takes."""
    bytes_per_s: int | None = 64 * MIB
    """The most that it reads and writes; None without limit."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, in words."""
        for name, least, most in (
            ("dirty_ratio", 0.0, 1.0),
            ("share", 0.01, 1.0),
            ("map_bytes", MIN_MAP_BYTES, None),
            ("file_bytes", MIN_FILE_BYTES, MAX_FILE_BYTES),
            ("min_lag_ms", 0, None),
            ("max_lag_ms", 0, None),
            ("tombstone_ms", 0, None),
        ):
            value = getattr(self, name)
            if value < least or (most is not None and value > most):
                allowed = f"{least} or more" if most is None else f"{least} to {most}"
                raise ValueError(f"{name} is {value}; allowed: {allowed}")
        if self.bytes_per_s is not None and self.bytes_per_s < 1:
            raise ValueError(f"bytes_per_s is {self.bytes_per_s}; allowed: 1 or more")
