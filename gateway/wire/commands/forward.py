"""Requests of our own: one node has another work on a request, or ask a client."""

from __future__ import annotations

import msgspec

from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.frame import I64
from ropeway.gateway.wire.header import Header, request


@request(RequestCode.ROPEWAY_FORWARD)
class Forward(Header, frozen=True):
    """Work on the request whose whole frame is the body.

    The answer's body is the whole frame of the request's own answer, or nothing where
    it wants none. Access is the client's, and checked for the request inside. The
    fields are those of `Signed` in `gateway.node.node_auth`; without a signature nobody
    believes them.
    """

    client: str
    to: str = ""
    session: str = ""
    number: I64 = -1
    signed_ms: I64 = msgspec.field(name="sealedMs", default=0)
    principal: str | None = None
    signature: str = msgspec.field(name="seal", default="")
    held_ms: I64 = -1
    """How long the node had the request before it was sent; below 0, it says nothing.

    This and `sent_ms` are not signed: all that they can have refused is the request.
    """
    sent_ms: I64 = 0
    """When it was sent, in milliseconds of that node's own monotonic clock."""
    channel: str | None = None
    """A `Channel` that is not a client's connection: what the audit log is to say."""
    channel_signature: str | None = None
    """`NodeAuth.sign_channel` of it. Apart from the other, which older nodes check."""
    spans: str | None = None
    """The spans of sending it on, as of `trace_context.tell`; not signed, for all that
    they say is where traces go on."""


@request(RequestCode.ROPEWAY_RELAY)
class Relay(Header, frozen=True):
    """Hand a producer the request whose whole frame is the body, and its answer back.

    QUERY_NOT_FOUND says that the producer is not connected to the node that is asked.
    Without a body that is all that is asked.
    """

    client_id: str
    owner: str | None = None
    """`ReplyTo.owner`: whose the client has to be; None: anybody's."""


@request(RequestCode.ROPEWAY_ASK)
class Ask(Header, frozen=True):
    """Have a consumer that is connected to the other node answer a request.

    The body is the whole frame of the request; the answer is the consumer's own.
    CONSUMER_NOT_ONLINE says that it is not connected there.
    """

    consumer_group: str
    client_id: str
