"""Settings of compaction that cannot work."""

from __future__ import annotations

from typing import Any

import pytest

from ropeway.storage.compaction.compaction_config import CompactionSettings


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"dirty_ratio": 1.5}, r"dirty_ratio is 1.5; allowed: 0.0 to 1.0"),
        ({"share": 0.0}, r"share is 0.0; allowed: 0.01 to 1.0"),
        ({"map_bytes": 10}, r"map_bytes is 10; allowed: 1024 or more"),
        ({"file_bytes": 1 << 40}, r"file_bytes is 1099511627776; allowed: 4096 to"),
        ({"tombstone_ms": -1}, r"tombstone_ms is -1; allowed: 0 or more"),
        ({"bytes_per_s": 0}, r"bytes_per_s is 0; allowed: 1 or more"),
    ],
)
def test_what_cannot_work_is_refused_in_words(
    setting: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        CompactionSettings(**setting)
