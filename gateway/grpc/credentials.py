"""What a call's metadata say of who makes it: MQv2-HMAC-SHA1.

Nothing is believed here, and no key is known: it is for whoever knows keys. It has the
form in which remoting clients sign, so that one check serves both.

    authorization: MQv2-HMAC-SHA1 Credential=<access key>[/<region>/<service>],
                   SignedHeaders=x-mq-date-time, Signature=<hex>
    x-mq-date-time: 20261122T050000Z
    x-mq-session-token: <security token>

Signed are the bytes of the date. Clients write it by clocks and time zones of their
own, so it is not compared with ours.

Source: DefaultAuthenticationContextBuilder.java, RocketMQ 5.3.4.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from ropeway.acl.api import Credentials
from ropeway.gateway.grpc.protocol import Code
from ropeway.gateway.grpc.statuses import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

AUTHORIZATION = "authorization"
DATE_TIME = "x-mq-date-time"
SESSION_TOKEN = "x-mq-session-token"  # noqa: S105 - a name
SCHEME = "MQv2-HMAC-SHA1"
_CREDENTIAL, _SIGNED, _SIGNATURE = "Credential", "SignedHeaders", "Signature"
_MAX_BYTES = 4096


def credentials_of(metadata: Mapping[str, str | bytes]) -> Credentials:
    """Read what the metadata say of the caller; nothing where they do not.

    Raises:
        RefusedError: They say something that cannot be read.
    """
    said = metadata.get(AUTHORIZATION)
    if said is None:
        return Credentials()
    if not isinstance(said, str) or len(said) > _MAX_BYTES:
        raise _unreadable(f"{len(said)} characters")
    scheme, _, rest = said.strip().partition(" ")
    if scheme != SCHEME:
        raise _unreadable(f"scheme {scheme!r:.40}")
    pairs = {}
    for part in rest.split(","):
        name, _, value = part.strip().partition("=")
        pairs[name] = value
    signed = pairs.get(_SIGNED, DATE_TIME)
    if signed.lower() != DATE_TIME:
        raise _unreadable(f"{_SIGNED} {signed!r:.80}")
    access_key = pairs.get(_CREDENTIAL, "").partition("/")[0]
    if not access_key:
        raise _unreadable(f"no {_CREDENTIAL}")
    return Credentials(
        access_key,
        # As remoting clients write it.
        _base64(pairs.get(_SIGNATURE, "")),
        _text(metadata, SESSION_TOKEN),
        signed=_text(metadata, DATE_TIME).encode(),
    )


def _base64(signature: str) -> str:
    try:
        return base64.b64encode(bytes.fromhex(signature)).decode()
    except ValueError as error:
        raise _unreadable(f"{_SIGNATURE} of {len(signature)} characters") from error


def _text(metadata: Mapping[str, str | bytes], name: str) -> str:
    value = metadata.get(name, "")
    return value if isinstance(value, str) else ""


def _unreadable(what: str) -> RefusedError:
    # What was sent is not repeated: it may be a secret in the wrong place.
    return RefusedError(
        Code.UNAUTHORIZED,
        f"{AUTHORIZATION} with {what}; allowed: {SCHEME} {_CREDENTIAL}=<access key>, "
        f"{_SIGNED}={DATE_TIME}, {_SIGNATURE}=<hex>",
    )
