"""What is configured is what the embedded log, its tier and its compaction are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import (
    CompactionConfig,
    Config,
    ConfigError,
    LogConfig,
    TierConfig,
)
from ropeway.gateway.embedded import compaction_settings, file_settings, tier_settings
from ropeway.gateway.node import names

if TYPE_CHECKING:
    from pathlib import Path


def test_hours_are_milliseconds_and_what_waits_is_kept_for_three_days():
    made = file_settings(Config(log=LogConfig(retention_hours=0.5, flush="sync")))
    assert (made.retention_ms, made.flush) == (1_800_000, "sync")
    three_days = 3 * 24 * 3_600_000
    assert made.kept_ms == {names.TIMER_TOPIC: three_days, names.POP_TOPIC: three_days}


def test_messages_without_a_key_are_kept_as_long_as_the_log_keeps_them():
    given = Config(
        log=LogConfig(retention_hours=2, segment_bytes=1 << 20),
        compaction=CompactionConfig(tombstone_hours=3),
    )
    made = compaction_settings(given)
    assert (made.keyless_ms, made.tombstone_ms) == (7_200_000, 10_800_000)
    assert made.file_bytes == 1 << 20


def test_a_tier_keeps_for_hours_or_for_ever():
    kept = TierConfig(url="memory://", retention_hours=1)
    for_ever = TierConfig(url="memory://", retention_hours=None)
    assert tier_settings(kept, LogConfig()).retention_ms == 3_600_000
    assert tier_settings(for_ever, LogConfig()).retention_ms is None


def test_the_log_says_what_becomes_of_messages_that_the_tier_has_lost_too():
    given = TierConfig(url="memory://")
    for what in ("refuse", "skip"):
        assert tier_settings(given, LogConfig(on_damage=what)).on_damage == what


def test_what_cannot_be_is_said_with_the_table_that_says_it(tmp_path: Path):
    small = TierConfig(url="memory://", cache_bytes=1)
    with pytest.raises(ConfigError, match=r"^tier: "):
        tier_settings(small, LogConfig())
    tiny = Config(data=tmp_path, log=LogConfig(segment_bytes=1))
    with pytest.raises(ConfigError, match=r"^log: "):
        file_settings(tiny)
