"""Signatures of requests: what they are of, and whether they are right.

Source: AclUtils.combineRequestContent and AclSigner, RocketMQ 5.5.0. What is signed has
neither a time nor the request's code, and nothing separates its values: whoever reads a
request can send it again, or cut its values elsewhere. TLS keeps it from being read.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ropeway.acl.api import Credentials

_HASHES = {
    "": "sha1",
    "HmacSHA1": "sha1",
    "HmacSHA256": "sha256",
}
"""By the name in Java of the HMAC. RocketMQ's third one, HmacMD5, is left out."""


def is_right(credentials: Credentials, secret: bytes) -> bool:
    """Whether a request was signed with a secret; takes as long for any wrong one."""
    if not secret or not (name := _HASHES.get(credentials.signature_method)):
        return False
    # As RFC 2104 has it. With the keyed halves kept, this takes a third of the time of
    # `hmac.digest`, which looks the hash up and keys it each time.
    keyed_inner, keyed_outer = _keyed(secret, name)
    inner = keyed_inner.copy()
    inner.update(credentials.content())
    outer = keyed_outer.copy()
    outer.update(inner.digest())
    expected = binascii.b2a_base64(outer.digest(), newline=False)
    given = credentials.signature.encode("utf-8", "replace")
    return hmac.compare_digest(expected, given)


@lru_cache(maxsize=4096)
def _keyed(secret: bytes, name: str) -> tuple[Any, Any]:
    size = hashlib.new(name).block_size
    if len(secret) > size:
        secret = hashlib.new(name, secret).digest()
    key = secret.ljust(size, b"\0")
    inner = hashlib.new(name, bytes(byte ^ 0x36 for byte in key))
    outer = hashlib.new(name, bytes(byte ^ 0x5C for byte in key))
    return inner, outer
