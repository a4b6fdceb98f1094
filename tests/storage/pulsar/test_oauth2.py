"""Tokens of an issuer: one for all, renewed in time, and no secret in an error."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.pulsar import oauth2 as module
from ropeway.storage.pulsar.errors import PulsarUnavailableError
from ropeway.storage.pulsar.oauth2 import OAuth2, OAuth2Settings
from ropeway.storage.pulsar.tls import TlsFiles
from tests.gateway.test_tls import Pair, issue
from tests.remoting import looped
from tests.system.issuer import CLIENT, Issuer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOUR = 3600.0


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return issue(tmp_path_factory.mktemp("tls"), "issuer", address="127.0.0.1")


@pytest.fixture
def issuer(pair: Pair) -> Iterator[Issuer]:
    numbers = itertools.count(1)
    made = Issuer(pair, lambda _: f"token-{next(numbers)}", HOUR)
    yield made
    made.close()


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """The file of a client that the issuer knows."""
    file = tmp_path / "client.json"
    file.write_text(json.dumps({"type": "client_credentials", **CLIENT}))
    return file


def write(file: Path, text: str) -> None:
    """Change what it says; nothing deletes it."""
    file.write_text(text) if text else file.unlink()


def of(url: str, client: Path, pair: Pair, **more: Any) -> OAuth2:
    given = OAuth2Settings(issuer_url=url, credentials_file=str(client), **more)
    return OAuth2(given, TlsFiles(str(pair.certificate)))


@looped
async def test_all_that_ask_at_once_get_one_token(
    issuer: Issuer, client: Path, pair: Pair
):
    who = of(issuer.url, client, pair, audience="pulsar", scope="send read")
    found = await asyncio.gather(*(who.proof() for _ in range(20)))
    assert set(found) == {b"token-1"}
    assert issuer.forms == [
        {
            "grant_type": "client_credentials",
            **CLIENT,
            "audience": "pulsar",
            "scope": "send read",
        }
    ]


@looped
async def test_what_pulsar_refuses_is_not_shown_again(
    issuer: Issuer, client: Path, pair: Pair
):
    who = of(issuer.url, client, pair)
    first = await who.proof()
    who.refused(first)
    assert await who.proof() == b"token-2"
    # Another connection that was told the same later.
    who.refused(first)
    assert await who.proof() == b"token-2"


@looped
async def test_a_token_is_renewed_before_it_ends_and_used_while_its_issuer_is_away(
    issuer: Issuer, client: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    who = of(issuer.url, client, pair)
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    assert await who.proof() == b"token-1"
    now[0] += 0.79 * HOUR
    assert await who.proof() == b"token-1"
    issuer.is_away = True
    now[0] += 0.02 * HOUR
    assert await who.proof() == b"token-1"
    issuer.is_away = False
    assert await who.proof() == b"token-2"
    issuer.is_away = True
    now[0] += 1.01 * HOUR
    with pytest.raises(PulsarUnavailableError, match="configuration answers 503"):
        await who.proof()
    issuer.is_away = False
    assert await who.proof() == b"token-3"


@looped
async def test_an_issuer_that_failed_is_left_alone_for_a_while(
    issuer: Issuer, client: Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "RETRY_S", HOUR)
    write(client, json.dumps({**CLIENT, "client_secret": "wrong"}))
    who = of(issuer.url, client, pair)
    for _ in range(3):
        with pytest.raises(PulsarUnavailableError, match="answers 401 invalid_client"):
            await who.proof()
    assert len(issuer.forms) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "No such file"),
        ("no-secret", "JSON is malformed"),
        ('{"client_id": "no-secret"}', "missing required field `client_secret`"),
        ('{"type": "password", "client_id": "", "client_secret": ""}', "Invalid enum"),
    ],
)
@looped
async def test_credentials_that_cannot_be_used_are_named_and_not_told(
    issuer: Issuer, client: Path, pair: Pair, text: str, said: str
):
    write(client, text)
    with pytest.raises(PulsarUnavailableError, match=said) as raised:
        await of(issuer.url, client, pair).proof()
    assert "allowed: JSON with client_id and client_secret" in str(raised.value)
    assert "no-secret" not in str(raised.value)
    assert issuer.forms == []


@pytest.mark.parametrize(
    ("metadata", "token", "said"),
    [
        ({"token_endpoint": "http://127.0.0.1:1/"}, "", "with the issuer's scheme"),
        ({}, "", "missing required field `token_endpoint`"),
        (None, "", "allowed: one line of printable"),
        (None, "two\nlines", "allowed: one line of printable"),
    ],
)
@looped
async def test_an_issuer_that_answers_something_else_is_told(
    issuer: Issuer,
    client: Path,
    pair: Pair,
    metadata: dict[str, str] | None,
    token: str,
    said: str,
):
    issuer.metadata = metadata
    issuer.make = lambda _: token
    with pytest.raises(PulsarUnavailableError, match=said):
        await of(issuer.url, client, pair).proof()


@looped
async def test_an_issuer_that_is_not_there_or_not_trusted_is_named(
    issuer: Issuer, client: Path, pair: Pair
):
    with pytest.raises(PulsarUnavailableError, match=r"127\.0\.0\.1:1 does not answer"):
        await of("https://127.0.0.1:1", client, pair).proof()
    given = OAuth2Settings(issuer_url=issuer.url, credentials_file=str(client))
    with pytest.raises(PulsarUnavailableError, match=r"does not answer: .*certificate"):
        await OAuth2(given, TlsFiles(None)).proof()
    assert issuer.forms == []
