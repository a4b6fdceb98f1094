"""What the settings say who we are, and that both ways into a cluster say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.api import LogUnavailableError
from ropeway.storage.pulsar.cluster import authentication, open_cluster
from ropeway.storage.pulsar.commands import Connect, Lookup
from ropeway.storage.pulsar.oauth2 import OAuth2Settings
from ropeway.storage.pulsar.pulsar_log_config import TOKEN_VARIABLE, PulsarLogSettings
from tests.gateway.test_tls import issue
from tests.remoting import looped
from tests.storage.pulsar.broker import TOPIC, running

if TYPE_CHECKING:
    from pathlib import Path

SECURE = {"service_url": "pulsar+ssl://127.0.0.1", "admin_url": "https://127.0.0.1"}


@pytest.mark.parametrize(
    ("given", "method"),
    [
        ({}, "none"),
        ({"certificate": "c", "key": "k", **SECURE}, "tls"),
        ({"certificate": "c", "key": "k", "token_file": "t", **SECURE}, "token"),
        ({"token_file": "t"}, "token"),
        ({"user": "u", "password_file": "p"}, "basic"),
        (
            {"oauth2": OAuth2Settings(issuer_url="https://i", credentials_file="c")},
            "token",
        ),
    ],
)
def test_each_setting_is_its_way_in(
    given: dict[str, Any], method: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert authentication(PulsarLogSettings(**given)).method == method


@pytest.mark.parametrize(
    ("given", "method"),
    [
        ({}, "token"),
        ({"certificate": "c", "key": "k", **SECURE}, "token"),
        ({"user": "u", "password_file": "p"}, "basic"),
    ],
)
def test_the_environments_token_counts_where_the_settings_have_no_other_way(
    given: dict[str, Any], method: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(TOKEN_VARIABLE, "token")
    assert authentication(PulsarLogSettings(**given)).method == method


@looped
async def test_no_authorities_are_read_where_nothing_is_encrypted(
    monkeypatch: pytest.MonkeyPatch,
):
    """A node's start would take a tenth of a second longer."""

    def fail(**_: Any) -> None:
        raise AssertionError

    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    monkeypatch.setattr("ssl.create_default_context", fail)
    await open_cluster(PulsarLogSettings(), 1.0).close()
    with pytest.raises(AssertionError):
        open_cluster(PulsarLogSettings(**SECURE), 1.0)


@looped
async def test_brokers_and_admin_are_told_the_same_and_which_listener_is_meant(
    tmp_path: Path,
):
    (tmp_path / "password").write_text("secret\n")
    async with running() as broker:
        settings = PulsarLogSettings(
            service_url=broker.url,
            admin_url="http://127.0.0.1:1",
            listener_name="external",
            user="someone",
            password_file=str(tmp_path / "password"),
        )
        cluster = open_cluster(settings, 5)
        admin, client = cluster
        await client.broker_of(TOPIC)
        (connect,) = broker.of(Connect)
        (lookup,) = broker.of(Lookup)
        assert (connect.auth_method, connect.auth_data) == ("basic", b"someone:secret")
        assert lookup.advertised_listener_name == "external"
        (tmp_path / "password").unlink()
        with pytest.raises(LogUnavailableError, match="cannot read the password: "):
            await admin.version()
        await cluster.close()


def test_a_certificate_that_cannot_be_used_is_refused_at_once(tmp_path: Path):
    one, other = issue(tmp_path, "one"), issue(tmp_path, "other")
    pair = {"certificate": str(one.certificate), "key": str(other.key)}
    with pytest.raises(OSError, match=r"cannot use .*one\.pem with the key"):
        open_cluster(PulsarLogSettings(**pair, **SECURE), 5)
