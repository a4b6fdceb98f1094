"""Signed reply addresses: a reply goes only to the client that sent its request.

With access control, a node puts an HMAC behind the client id in a request's property
REPLY_TO_CLIENT. Consumers copy that property into their replies unread
(MessageUtil.createReplyMessage, RocketMQ 5.3.4; CreateReplyMessage, Go 2.1.2), so only
who has received a request can answer it. No node has to remember requests: all nodes
of a cluster have the same secret.

An address holds for one correlation id, one client id and one principal, for a day:
longer than anybody waits. The request's own TTL cannot be used, for Java writes
milliseconds there and Go seconds.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.acl.api import Principal

VALID_MS = 24 * 3600 * 1000
_END = "!"
_DIGITS = 32
"""Of an HMAC-SHA256 in hex: 128 bits."""


class ReplyToError(Exception):
    """A reply names no address that a request with its correlation id was sent with."""


class ReplyTo(msgspec.Struct, frozen=True):
    """Which client waits for a reply."""

    client_id: str
    owner: str | None = None
    """Stands for the principal that the client has to belong to; None: for any."""


class ReplyAddresses:
    """Signs reply addresses, and verifies those of all nodes.

    Args:
        secret: The cluster's.
        now_ms: Milliseconds since 1970.
    """

    def __init__(self, secret: str, now_ms: Callable[[], int]) -> None:
        # Not the key of other signatures: none can stand for one of the others.
        self._key = hmac.digest(secret.encode(), b"REPLY_TO_CLIENT", "sha256")
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return "ReplyAddresses()"

    def sign(self, client_id: str, correlation_id: str, principal: Principal) -> str:
        """The address of a client that sends a request now."""
        owner = self.owner(principal)
        signed = [client_id, str(self._now_ms()), owner]
        return _END.join((*signed, self._hmac(*signed, correlation_id)))

    def verify(self, address: str, correlation_id: str) -> ReplyTo:
        """Read the address of a reply.

        Raises:
            ReplyToError: It is not that of a request with this correlation id.
        """
        *signed, given = address.rsplit(_END, 3)
        made = self._hmac(*signed, correlation_id)
        if len(signed) != 3 or not hmac.compare_digest(  # noqa: PLR2004
            made.encode(), given.encode("utf-8", "replace")
        ):
            raise ReplyToError(
                "REPLY_TO_CLIENT and CORRELATION_ID are not those of a request; "
                "allowed: both as they came with the message that is answered"
            )
        client_id, sent, owner = signed
        age_ms = self._now_ms() - int(sent)
        if age_ms > VALID_MS:
            raise ReplyToError(
                f"the request was sent {age_ms // 3_600_000} hours ago; allowed: "
                f"{VALID_MS // 3_600_000}"
            )
        return ReplyTo(client_id, owner)

    def owner(self, principal: Principal) -> str:
        """What stands for a principal, so that no consumer reads who asks."""
        return self._hmac(principal.hook, principal.name)

    def _hmac(self, *values: str) -> str:
        text = msgspec.json.encode(values)
        return hmac.digest(self._key, text, "sha256").hex()[:_DIGITS]
