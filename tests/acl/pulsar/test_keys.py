"""Keys: where they are, what they must be, and that errors show nothing of them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ropeway.acl.api import HookError
from ropeway.acl.pulsar.keys import read_key
from ropeway.acl.pulsar.options import read_options
from tests.acl.pulsar.issuing import SECRET
from tests.acl.pulsar.test_tokens import EC, RSA, der, inline, pem

if TYPE_CHECKING:
    from pathlib import Path


def read(environment: dict[str, str] | None = None, **options: Any) -> Any:
    return read_key(read_options("pulsar", options), environment or {})


def test_a_key_is_in_a_file_in_the_environment_or_inline(tmp_path: Path):
    file = tmp_path / "secret key"
    file.write_bytes(SECRET)
    encoded = base64.b64encode(SECRET).decode()
    for given in (
        str(file),
        file.as_uri(),
        f"data:;base64,{encoded}",
        f"data:application/octet-stream;base64,{encoded}",
        "env:TOKENS_KEY",
    ):
        found = read({"TOKENS_KEY": encoded}, token_secret_key=given)
        assert (found.algorithm, found.key) == ("HS256", SECRET)


def private(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "give token_secret_key or token_public_key, not both"),
        ({"token_secret_key": "a", "token_public_key": "b"}, "not both"),
        ({"token_secret_key": "env:NOT_THERE"}, "no environment variable"),
        ({"token_secret_key": "/not/there"}, "cannot be read: No such file"),
        ({"token_secret_key": "data:;base64,secret!"}, "is not base64"),
        ({"token_secret_key": "data:;base64,c2VjcmV0!"}, "is not base64"),
        ({"token_secret_key": "env:ALMOST"}, "is not base64"),
        ({"token_secret_key": inline(b"secret")}, "has 6 bytes; allowed: 32"),
        ({"token_secret_key": inline(pem(RSA))}, "is a key for others to see"),
        ({"token_public_key": inline(b"secret" * 20)}, "no public key in DER or PEM"),
        ({"token_public_key": inline(b"-----BEGIN")}, "no public key in DER or PEM"),
        ({"token_public_key": inline(private(RSA))}, "no public key in DER or PEM"),
        ({"token_public_key": inline(der(EC))}, "not for RS256; allowed: an RSA key"),
        (
            {"token_public_key": inline(der(RSA)), "token_public_alg": "ES256"},
            "not for ES256; allowed: a key on secp256r1",
        ),
        (
            {"token_public_key": inline(der(EC)), "token_public_alg": "ES384"},
            "allowed: a key on secp384r1",
        ),
        (
            {"token_public_key": inline(der(RSA)), "token_public_alg": "HS256"},
            "token_public_alg is 'HS256'; allowed: RS256,",
        ),
        (
            {"token_public_key": inline(der(RSA)), "token_public_alg": "none"},
            "token_public_alg is 'none'; allowed: RS256,",
        ),
        (
            {"token_public_key": inline(der(rsa.generate_private_key(65537, 1024)))},
            "an RSA key of 2048 bits or more",
        ),
        ({"token_secret_key": "a", "token_audience": "b"}, "go together"),
        ({"token_secret_key": "a", "refresh_s": 0}, "refresh_s"),
        ({"token_secret_key": "a", "tokn": 1}, "tokn"),
        ({"token_secret_key": 7}, "token_secret_key"),
    ],
)
def test_what_cannot_be_a_key_is_refused_and_not_shown(
    options: dict[str, Any], complaint: str
):
    with pytest.raises(HookError) as caught:
        read({"ALMOST": "c2VjcmV0!"}, **options)
    assert complaint in str(caught.value)
    assert "secret!" not in str(caught.value)
    assert "secretsecret" not in str(caught.value)
    assert caught.value.__cause__ is None or isinstance(
        caught.value.__cause__, (OSError, ValueError)
    )
