"""What can be set about the embedded log, each with its unit and its reason."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ropeway.storage.api import Flush

KIB = 1024
MIB = 1024 * KIB

MAX_RECORD_BYTES = 16 * MIB
"""The largest record. Four times RocketMQ's largest default body (4 MiB)."""

BLOCK_BYTES = 4 * MIB
"""A block is closed at this size: joining and checking it costs the loop 3 ms."""

MIN_SEGMENT_BYTES = 64 * KIB
MAX_SEGMENT_BYTES = 2048 * MIB
"""Places within a segment are unsigned 32-bit numbers."""


class FileLogSettings(Struct, frozen=True, kw_only=True):
    """Settings of one embedded log."""

    flush: Flush = "async"
    """`sync`: an append is done when the disk has it. `async`: when the kernel has."""
    flush_interval_ms: int = 500
    """With `async`, how long the kernel may keep it (RocketMQ: 500 ms)."""
    segment_bytes: int = 128 * MIB
    """Bytes set aside for one segment file. Retention drops whole segments."""
    tail_bytes: int = 64 * MIB
    """Memory for the newest blocks, shared by all partitions."""
    in_flight_bytes: int = 64 * MIB
    """Appends that wait for the disk; beyond that an append is refused as busy."""
    wait_ms: int = 200
    """While an append has waited for the disk longer, others are refused as busy."""
    retention_ms: int | None = 72 * 3600 * 1000
    """How long records are kept (RocketMQ: 72 h); None for ever."""
    retention_bytes: int | None = None
    """How many bytes of segments are kept; None without limit."""
    kept_ms: dict[str, int] = {}
    """By topic: its records are kept for so long, whatever retention says."""
    on_damage: Literal["refuse", "skip"] = "refuse"
    """`skip` opens and reads a damaged log without the records that are lost."""
    open_files: int = 256
    """File descriptors kept open for reading sealed segments."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, in words."""
        if not MIN_SEGMENT_BYTES <= self.segment_bytes <= MAX_SEGMENT_BYTES:
            raise ValueError(
                f"segment_bytes is {self.segment_bytes}; "
                f"allowed: {MIN_SEGMENT_BYTES} to {MAX_SEGMENT_BYTES}"
            )
        for name in ("flush_interval_ms", "in_flight_bytes", "wait_ms", "open_files"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; allowed: 1 or more")
