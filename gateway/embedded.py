"""What the embedded log, its tier and its compaction are told, of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.config import ConfigError
from ropeway.gateway.node import names
from ropeway.storage.compaction.compaction_config import CompactionSettings
from ropeway.storage.file import FileLogSettings
from ropeway.storage.sealed import compression
from ropeway.storage.tiered.tier_config import TieredSettings

if TYPE_CHECKING:
    from ropeway.gateway.config import Config, LogConfig, TierConfig

WINDOW_MS = 86_400_000
"""A day: seldom, and well before what is kept for three."""
WINDOWS_KEPT = 3
"""Of so many, retention must leave all: a node may be down for one of them."""


def file_settings(config: Config) -> FileLogSettings:
    """Return how the log keeps messages, and for how long.

    Raises:
        ConfigError: A setting cannot be used.
    """
    given = config.log
    limits = config.limits
    try:
        return FileLogSettings(
            flush=given.flush,
            segment_bytes=given.segment_bytes,
            tail_bytes=given.tail_cache_bytes,
            retention_ms=int(given.retention_hours * 3_600_000),
            retention_bytes=given.retention_bytes,
            kept_ms=dict.fromkeys(
                (names.TIMER_TOPIC, names.POP_TOPIC), WINDOWS_KEPT * WINDOW_MS
            ),
            on_damage=given.on_damage,
            in_flight_bytes=limits.waiting_bytes,
            wait_ms=limits.send_wait_ms,
        )
    except ValueError as error:
        raise ConfigError(f"log: {error}") from error


def compaction_settings(config: Config) -> CompactionSettings:
    """Return when and how topics are compacted."""
    given = config.compaction
    return CompactionSettings(
        dirty_ratio=given.dirty_ratio,
        min_lag_ms=given.min_lag_ms,
        max_lag_ms=given.max_lag_ms,
        tombstone_ms=int(given.tombstone_hours * 3_600_000),
        keyless_ms=int(config.log.retention_hours * 3_600_000),
        map_bytes=given.map_bytes,
        file_bytes=config.log.segment_bytes,
        bytes_per_s=given.bytes_per_s,
    )


def tier_settings(given: TierConfig, config: LogConfig) -> TieredSettings:
    """Return what goes to a tier, and when.

    Raises:
        ConfigError: A setting cannot be used.
    """
    try:
        settings = TieredSettings(
            level=given.level,
            commit_records=given.commit_messages,
            commit_bytes=given.commit_bytes,
            commit_ms=given.commit_ms,
            segment_bytes=given.segment_bytes,
            buffer_bytes=given.buffer_bytes,
            lag_bytes=given.lag_bytes,
            upload_bytes_per_s=given.upload_bytes_per_s,
            retention_ms=(
                None
                if given.retention_hours is None
                else int(given.retention_hours * 3_600_000)
            ),
            compression=given.compression,
            cache_bytes=given.cache_bytes,
            read_ahead_bytes=given.read_ahead_bytes,
            backfill=given.backfill,
            on_damage=config.on_damage,
        )
    except ValueError as error:
        raise ConfigError(f"tier: {error}") from error
    if complaint := compression.complaint(given.compression):
        raise ConfigError(f"tier: {complaint}")
    return settings
