"""What a request says of who sent it, and what of it the signature is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Claims = tuple[str, str, str, str, str, bytes]
"""Access key, signature, security token, signature method and namespace, each empty
where it is not given; and the values that are signed."""

_GIVEN = "AccessKey", "Signature", "SecurityToken"
_OTHERS = "SignatureMethod", "ns"
_UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
_SIGNED_BEFORE = 399
"""MQVersion.V4_9_3: clients up to that one add `_UNIQUE_KEY_QUERY` once they signed."""


def claims_in(fields: Mapping[str, str], version: int) -> Claims | None:
    """What a request's fields say of who sent it; None where they say nothing."""
    if not any(name in fields for name in _GIVEN):
        return None
    key, signature, token, method, namespace = (
        fields.get(name, "") for name in (*_GIVEN, *_OTHERS)
    )
    return key, signature, token, method, namespace, signed_values(fields, version)


def signed_values(fields: Mapping[str, str], version: int) -> bytes:
    """The values that a signature is of; the body is signed behind them.

    Source: DefaultAuthenticationContextBuilder.build, RocketMQ 5.5.0.
    """
    signed = set(fields) - {"Signature"}
    if version <= _SIGNED_BEFORE:
        signed.discard(_UNIQUE_KEY_QUERY)
    return "".join([fields[name] for name in sorted(signed)]).encode()
