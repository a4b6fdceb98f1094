"""A real Pulsar that lets in by token, by password and by certificate."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING

from tests.system.pulsar import Pulsar

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.test_tls import Pair

KEY = bytes(range(32))
ADMIN = "admin"
PASSWORD = "open-sesame"
USERS = f"{ADMIN}:$apr1$ropeway1$i2PXdxrGS9YvdOpYxqVG//"
"""As `htpasswd` writes them."""
EXTERNAL = "external"
"""A listener of brokers, beside the one that they name to whom names none."""
REFUSED_S = 15
"""So long is tried what is refused: on a busy machine, until the refusal is heard."""
_PROVIDERS = ",".join(
    f"org.apache.pulsar.broker.authentication.AuthenticationProvider{way}"
    for way in ("Token", "Basic", "Tls")
)
AS_ITSELF = "org.apache.pulsar.client.impl.auth.AuthenticationToken"

SETTINGS = """\
[pulsar]
service_url = "{service_url}"
admin_url = "{admin_url}"
token_file = "{directory}/token"
tenant = "public"
namespace = "gateway"
namespaces = ["public/secured"]
[acl]
hooks = ["pulsar"]
[acl.options.pulsar]
token_secret_key = "{directory}/key"
admin_url = "{admin_url}"
token_file = "{directory}/token"
tenant = "public"
namespace = "gateway"
refresh_s = 2.0
"""
"""A node that believes Pulsar's tokens, and shows its own, by options of the hook."""


def token(subject: str, seconds: float = 3600, signed_with: bytes = KEY) -> str:
    """A JWT that ends after some seconds, and not before."""

    def encoded(data: bytes) -> bytes:
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    # Two that are made in one second differ, as an issuer's do.
    now = time.time()
    claims = {"sub": subject, "exp": int(now + seconds) + 1, "jti": str(now)}
    text = b".".join(
        encoded(json.dumps(part).encode()) for part in ({"alg": "HS256"}, claims)
    )
    signature = hmac.new(signed_with, text, hashlib.sha256).digest()
    return b".".join((text, encoded(signature))).decode()


def secured_pulsar(directory: Path, pair: Pair, *, mutual: bool = False) -> Pulsar:
    """One where `admin` may do all, and who else is known may do nothing.

    Args:
        directory: For its files.
        pair: What it shows, of localhost and 127.0.0.1; it also signs certificates of
            clients.
        mutual: Its ports with TLS end each connection that shows no certificate.
    """
    admin = token(ADMIN)
    key, users = (base64.b64encode(one).decode() for one in (KEY, USERS.encode()))
    return Pulsar(
        directory,
        settings={
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "authenticationProviders": _PROVIDERS,
            "superUserRoles": ADMIN,
            "tokenSecretKey": f"data:;base64,{key}",
            "basicAuthConf": f"data:;base64,{users}",
            "tlsTrustCertsFilePath": str(pair.certificate),
            "tlsRequireTrustedClientCertOnConnect": str(mutual).lower(),
            "authenticationRefreshCheckSeconds": "1",
            "brokerClientAuthenticationPlugin": AS_ITSELF,
            "brokerClientAuthenticationParameters": f"token:{admin}",
        },
        token=admin,
        tls=(pair.certificate, pair.key),
        listener=EXTERNAL,
    )
