"""RocketMQ ACL 1.0: requests signed with a shared secret.

Source: AclClientRPCHook.java and AclUtils.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from ropeway.gateway.wire.frame import Buffer


class Credentials(Struct, frozen=True, kw_only=True):
    """Who a client is, and what it proves that with."""

    access_key: str
    secret_key: str
    security_token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials(access_key={self.access_key!r}, secret_key=...)"


def signed(
    fields: dict[str, str], body: Buffer, credentials: Credentials
) -> dict[str, str]:
    """Give a request's fields with AccessKey, SecurityToken and Signature added."""
    signed = {**fields, "AccessKey": credentials.access_key}
    if credentials.security_token is not None:
        signed["SecurityToken"] = credentials.security_token
    content = "".join(signed[name] for name in sorted(signed)).encode()
    secret = credentials.secret_key.encode()
    digest = hmac.digest(secret, content + bytes(body), hashlib.sha1)
    signed["Signature"] = base64.b64encode(digest).decode()
    return signed
