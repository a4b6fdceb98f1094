"""Who a job is, from options, files and the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.client import Credentials
from ropeway.spark.credential_options import read_credentials

if TYPE_CHECKING:
    from pathlib import Path

KEYS = Credentials(access_key="me", secret_key="s3cret")
TOKEN = Credentials(access_key="t0ken", secret_key="unused")


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that says nothing."""
    for name in ("ACCESS_KEY", "SECRET_KEY", "TOKEN"):
        monkeypatch.delenv(f"ROPEWAY_{name}", raising=False)


def test_options_say_it(tmp_path: Path) -> None:
    secret, token = tmp_path / "secret", tmp_path / "token"
    secret.write_text("s3cret\nmore")
    token.write_text("t0ken\n")
    assert read_credentials({}) is None
    assert read_credentials({"accessKey": "me", "secretKey": "s3cret"}) == KEYS
    assert read_credentials({"accessKey": "me", "secretKeyFile": str(secret)}) == KEYS
    assert read_credentials({"token": "t0ken"}) == TOKEN
    assert read_credentials({"tokenFile": str(token)}) == TOKEN


def test_the_environment_says_it_where_no_option_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROPEWAY_TOKEN", "t0ken")
    assert read_credentials({}) == TOKEN
    assert read_credentials({"accessKey": "me", "secretKey": "s3cret"}) == KEYS
    monkeypatch.setenv("ROPEWAY_ACCESS_KEY", "me")
    monkeypatch.setenv("ROPEWAY_SECRET_KEY", "s3cret")
    assert read_credentials({}) == KEYS
    assert read_credentials({"token": "t0ken"}) == TOKEN


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"secretKey": "s"}, "accessKey and secretKey: one is missing"),
        ({"accessKey": "a", "token": "t"}, "accessKey and token are both given"),
        (
            {"accessKey": "a", "secretKey": "s", "secretKeyFile": "f"},
            "secretKey and secretKeyFile are both given",
        ),
        ({"tokenFile": "/nowhere/token"}, "tokenFile is '/nowhere/token': .*No such"),
        ({"tokenFile": "/dev/null"}, "tokenFile is '/dev/null', which is empty"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_credentials(given)
