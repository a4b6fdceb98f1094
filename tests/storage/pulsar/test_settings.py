"""Settings that cannot work are refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from storage.pulsar.settings import PulsarLogSettings


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"pack_bytes": 10}, "pack_bytes is 10; allowed: 4096 to 4194304"),
        ({"packs_in_flight": 0}, "packs_in_flight is 0; allowed: 1 or more"),
        ({"positions": 3}, "positions is 3; allowed: 4 or more"),
        ({"namespaces": ("public",)}, "'public'; allowed: tenant/namespace"),
    ],
)
def test_they_say_what_is_allowed(setting: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PulsarLogSettings(**setting)
