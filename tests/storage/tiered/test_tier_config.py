"""Settings that cannot work are refused in words."""

import pytest

from ropeway.storage.tiered.tier_config import TieredSettings


@pytest.mark.parametrize("name", ["commit_ms", "uploads", "retention_ms"])
def test_numbers_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} is 0; allowed: 1 or more"):
        TieredSettings(**{name: 0})


def test_a_cache_holds_a_few_blocks():
    with pytest.raises(ValueError, match="cache_bytes is 1000; allowed: 4194304"):
        TieredSettings(cache_bytes=1000)
