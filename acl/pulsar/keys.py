"""The key that tokens are verified with, and the one algorithm that it is for.

Which algorithm is accepted follows from the configuration and never from the token, so
no token can have a public key taken for a shared secret, or itself for unsigned.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    load_der_public_key,
    load_pem_public_key,
)

from ropeway.acl.api import HookError
from ropeway.common.reasons import reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ropeway.acl.pulsar.options import Options

SYMMETRIC = "HS256"
_LEAST_SECRET_BYTES = 32
"""As many as the hash has: RFC 7518, 3.2, and Pulsar's own library demand it."""
_LEAST_RSA_BITS = 2048
"""RFC 7518, 3.3."""
_CURVES = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}
_PUBLIC_ALGS = ("RS256", "RS384", "RS512", *_CURVES)

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey


class Key(NamedTuple):
    """What verifies a token's signature."""

    algorithm: str
    key: bytes | PublicKey
    source: bytes
    """What was read; it tells one key from another."""


def read_key(options: Options, environment: Mapping[str, str]) -> Key:
    """Read the key that the options name.

    Args:
        options: Where it is, and what for.
        environment: The process' environment.

    Raises:
        HookError: It is none, or none for the algorithm; nothing of it is shown.
    """
    if options.token_secret_key is not None:
        secret = _read("token_secret_key", options.token_secret_key, environment)
        if len(secret) < _LEAST_SECRET_BYTES:
            raise HookError(
                f"token_secret_key has {len(secret)} bytes; allowed: "
                f"{_LEAST_SECRET_BYTES} or more"
            )
        try:
            jwt.get_algorithm_by_name(SYMMETRIC).prepare_key(secret)
        except jwt.InvalidKeyError:
            raise HookError(
                "token_secret_key is a key for others to see; allowed: a secret"
            ) from None
        return Key(SYMMETRIC, secret, secret)
    assert options.token_public_key is not None, "one of the two is given"
    algorithm = options.token_public_alg
    if algorithm not in _PUBLIC_ALGS:
        raise HookError(
            f"token_public_alg is {algorithm!r}; allowed: {', '.join(_PUBLIC_ALGS)}"
        )
    source = _read("token_public_key", options.token_public_key, environment)
    return Key(algorithm, _public_key(source, algorithm), source)


def _public_key(source: bytes, algorithm: str) -> PublicKey:
    load = (
        load_pem_public_key if source.lstrip()[:5] == b"-----" else load_der_public_key
    )
    try:
        key = load(source)
    except (ValueError, UnsupportedAlgorithm):
        # The exception may quote what it could not read.
        raise HookError("token_public_key is no public key in DER or PEM") from None
    curve = _CURVES.get(algorithm)
    if curve is None:
        if isinstance(key, rsa.RSAPublicKey) and key.key_size >= _LEAST_RSA_BITS:
            return key
        fitting = f"an RSA key of {_LEAST_RSA_BITS} bits or more"
    else:
        if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == curve:
            return key
        fitting = f"a key on {curve}"
    raise HookError(f"token_public_key is not for {algorithm}; allowed: {fitting}")


def _read(option: str, given: str, environment: Mapping[str, str]) -> bytes:
    """What Pulsar's own settings of that form mean, and an environment variable."""
    try:
        if given.startswith("env:"):
            return base64.b64decode(environment[given[4:]], validate=True)
        if given.startswith("data:"):
            return base64.b64decode(given.partition(",")[2], validate=True)
        if given.startswith("file:"):
            return Path(unquote(urlsplit(given).path)).read_bytes()
        return Path(given).expanduser().read_bytes()
    except KeyError:
        raise HookError(
            f"{option}: there is no environment variable of that name"
        ) from (None)
    except (binascii.Error, ValueError):
        raise HookError(f"{option} is not base64") from None
    except OSError as error:
        raise HookError(f"{option} cannot be read: {reason_of(error)}") from error
