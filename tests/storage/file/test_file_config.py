"""Settings refuse what cannot work."""

from __future__ import annotations

import pytest

from ropeway.storage.file import FileLogSettings


@pytest.mark.parametrize("value", [0, 65535, 1 << 32])
def test_segment_sizes_out_of_range_are_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"segment_bytes is {value}; allowed: 65536"):
        FileLogSettings(segment_bytes=value)


@pytest.mark.parametrize("name", ["flush_interval_ms", "in_flight_bytes", "open_files"])
def test_numbers_below_one_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0; allowed: 1 or more"):
        FileLogSettings(**{name: 0})
