"""Settings that cannot work are refused in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from storage.pulsar.settings import TOKEN_VARIABLE, PulsarLogSettings

if TYPE_CHECKING:
    from pathlib import Path


def test_a_token_is_read_from_its_file_each_time_or_else_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert PulsarLogSettings().token is None
    monkeypatch.setenv(TOKEN_VARIABLE, " set \n")
    token = PulsarLogSettings().token
    assert token is not None
    assert token() == "set"
    file = tmp_path / "token"
    token = PulsarLogSettings(token_file=str(file)).token
    assert token is not None
    for text in ("first", "renewed"):
        file.write_text(f"{text}\n", encoding="utf-8")
        assert token() == text


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
