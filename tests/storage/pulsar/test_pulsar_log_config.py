"""Settings that cannot work are refused in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.pulsar.pulsar_log_config import TOKEN_VARIABLE, PulsarLogSettings

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
        ({"service_url": "http://h"}, "service URL 'http://h'; allowed: pulsar://host"),
        ({"admin_url": "h:8080"}, "admin_url is 'h:8080'; allowed: http://host:port"),
        ({"admin_url": "http://h,,i"}, "'http://h,,i'; allowed: http://host:port"),
        ({"listener_name": " "}, "listener_name is ' '; allowed: a listener's name"),
        ({"user": "u"}, "user is given without password_file; allowed: both, or neit"),
        ({"password_file": "p"}, "password_file is given without user; allowed: both"),
        ({"key": "k"}, "key is given without certificate; allowed: both, or neither"),
        ({"user": "a:b", "password_file": "p"}, "user is 'a:b'; allowed: a name wit"),
        (
            {"user": "u", "password_file": "p", "token_file": "t"},
            "token_file and user are given; allowed: one of token_file, user, oauth2",
        ),
        (
            {"certificate": "c", "key": "k", "admin_url": "https://h"},
            r"and service_url is 'pulsar://.*'; allowed with it: pulsar\+ssl://",
        ),
        (
            {"certificate": "c", "key": "k", "service_url": "pulsar+ssl://h"},
            "and admin_url is 'http://.*'; allowed with it: https://",
        ),
    ],
)
def test_they_say_what_is_allowed(setting: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PulsarLogSettings(**setting)
