"""Signatures on requests that nodes send on, so that nobody else can say who sent them.

A signature is an HMAC with a secret that all nodes of the cluster have: of everything
that the node says of the request, and of the request itself.

What holds: nobody without the secret makes a signature, or changes anything under one.
A request that was seen on its way is not accepted again: not by another node, since it
says which address it was sent to; not by the same one, since the numbers of a session
only go up; and not after `FRESH_S`, so that sessions may be forgotten. A node that has
just started knows no sessions, so it accepts nothing that was signed before it did.

What does not: who reads along still sees the requests, and who is in between may hold
one back for a while. TLS between nodes prevents both.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.gateway.wire.frame import Buffer

FRESH_S = 60.0
"""How old a signature may be, and how far clocks of nodes may be apart."""
_SECRET_BYTES = 32


class SignatureError(Exception):
    """A request was not signed by a node of this cluster, for this one, just now."""


class Signed(msgspec.Struct, frozen=True):
    """What a node says of a request that it sends on."""

    client: str
    """Who sent it, host:port."""
    to: str
    """The address that the node has sent it to."""
    session: str
    """Of the sending connection: nobody else has the same."""
    number: int
    """Higher than that of all requests before it in the session."""
    signed_ms: int
    """When, in milliseconds since 1970."""
    principal: str | None = None
    """Who sent it, as JSON; None where the node does not guard, or asks for itself."""


def new_secret() -> str:
    """A secret for a cluster."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def new_session() -> str:
    """A name for a session that nobody else has."""
    return secrets.token_urlsafe(12)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class NodeAuth:
    """Makes signatures, and believes those of others.

    Args:
        secret: The cluster's.
        now_ms: Milliseconds since 1970.
    """

    def __init__(self, secret: str, now_ms: Callable[[], int] = _now_ms) -> None:
        self._key = secret.encode()
        self._now_ms = now_ms
        self._started_ms = now_ms()
        self._sessions: OrderedDict[str, tuple[int, int]] = OrderedDict()
        """Their last numbers, and when those came; the one that came last is last."""

    def __repr__(self) -> str:
        return "NodeAuth()"

    def say(
        self, client: str, to: str, session: str, number: int, principal: str | None
    ) -> Signed:
        """What a node says now."""
        return Signed(client, to, session, number, self._now_ms(), principal)

    def sign(self, said: Signed, body: Buffer) -> str:
        """The signature of what a node says, and of the request."""
        text = msgspec.json.encode(msgspec.structs.astuple(said))
        made = hmac.new(self._key, text, "sha256")
        made.update(body)
        return made.hexdigest()

    def sign_channel(self, signature: str, channel: str) -> str:
        """The signature of the channel that a signed request came by."""
        text = msgspec.json.encode(("channel", signature, channel))
        return hmac.new(self._key, text, "sha256").hexdigest()

    def check_channel(self, signature: str, channel: str, given: str) -> None:
        """Believe by which channel a request came whose signature is believed.

        Raises:
            SignatureError: No node of this cluster says so.
        """
        made = self.sign_channel(signature, channel)
        if not hmac.compare_digest(made.encode(), given.encode("utf-8", "replace")):
            raise SignatureError("its channel is not signed by this cluster's secret")

    def check(self, said: Signed, body: Buffer, signature: str, address: str) -> None:
        """Believe what a node says, once.

        Args:
            said: What it says.
            body: The request.
            signature: What proves it.
            address: Where it came to: the one that this node advertises there.

        Raises:
            SignatureError: It is not to be believed; the text says why, for people.
        """
        given = signature.encode("utf-8", "replace")
        if not hmac.compare_digest(self.sign(said, body).encode(), given):
            raise SignatureError("it has no signature by this cluster's secret")
        if said.to != address:
            raise SignatureError(
                f"it was signed for {said.to:.80}, and came to {address}"
            )
        now_ms = self._now_ms()
        apart_s = (now_ms - said.signed_ms) / 1000
        if abs(apart_s) > FRESH_S:
            raise SignatureError(
                f"it was signed {apart_s:.0f} s ago; allowed: {FRESH_S:.0f} s, so the "
                "nodes' clocks must agree"
            )
        if said.signed_ms < self._started_ms:
            raise SignatureError("it was signed before this node started")
        number, _ = self._sessions.get(said.session, (-1, 0))
        if said.number <= number:
            raise SignatureError("it has come before")
        self._sessions[said.session] = said.number, now_ms
        self._sessions.move_to_end(said.session)
        self._forget_old(now_ms)

    def _forget_old(self, now_ms: int) -> None:
        # A clock that is ahead keeps its signatures fresh for that much longer.
        while now_ms - next(iter(self._sessions.values()))[1] > 2_000 * FRESH_S:
            self._sessions.popitem(last=False)
