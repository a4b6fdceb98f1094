"""Requests of clients of another node, which came here in that node's own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import structlog

from ropeway.acl.api import Channel, Principal, Source
from ropeway.gateway.node.node_auth import SignatureError, Signed
from ropeway.gateway.processors import stale
from ropeway.gateway.processors.context import LATER, Answer, Context, Later, Refusal
from ropeway.gateway.processors.dispatch import begin
from ropeway.gateway.processors.needs import SIGNED
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import host_port, message
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, ResponseCode
from ropeway.gateway.wire.commands.forward import Forward
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import FrameReader, decode_envelope

if TYPE_CHECKING:
    from ropeway.gateway.wire.frame import Buffer

log = structlog.get_logger(__name__)


@handles(Forward, SIGNED, anywhere=True)
def forwarded(request: Forward, context: Context) -> Later:
    """Work on a request as if its client had sent it here."""
    principal, channel = _believe(request, context)
    if context.peer.share is not None:
        # Its clients are counted where they connect.
        context.peer.share.leave()
    try:
        host, port = host_port.split(request.client)
        packed_address = message.pack_host(host, port)
    except ValueError as error:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"client is {request.client!r:.80}; allowed: an address as host:port",
        ) from error
    try:
        (frame,) = FrameReader(context.node.config.limits.frame_bytes).feed(
            context.body
        )
        envelope = decode_envelope(frame.serialize_type, frame.header)
    except (FrameError, ValueError) as error:
        raise Refusal(
            ResponseCode.INVALID_PARAMETER,
            f"body of {len(context.body)} bytes; allowed: one whole request",
        ) from error
    source = Source(host, channel)
    peer = ForwardedPeer(context, request.client, packed_address, source, principal)
    peer.spans = request.spans
    since_s = _since(request, context)
    sent_on = Context(
        context.node,
        peer,
        envelope.code,
        envelope.opaque,
        bool(envelope.flag & ONE_WAY_FLAG),
        frame.body,
        since_s=since_s or time.monotonic(),
        envelope=envelope,
    )
    if not since_s or not stale.refused(sent_on, between_nodes=True):
        begin(sent_on)
    return LATER


def _since(request: Forward, context: Context) -> float:
    """Since when nodes have had a request, by our clock; 0 where the other says not."""
    if request.held_ms < 0:
        return 0.0
    now_s = time.monotonic()
    transit = context.node.forwarder.transit
    took_ms = transit.took_ms(request.session, request.sent_ms, int(now_s * 1000))
    return now_s - (request.held_ms + took_ms) / 1000


def _believe(request: Forward, context: Context) -> tuple[Principal | None, Channel]:
    """Who sent a request and how, as another node says; clients may say anything.

    Raises:
        Refusal: No node of the cluster says it.
    """
    peer = context.peer
    *fields, signature, _, _, by, by_signature, _ = msgspec.structs.astuple(request)
    auth = context.node.forwarder.node_auth
    try:
        auth.check(Signed(*fields), context.body, signature, peer.advertised)
        channel = Channel.FORWARDED
        if by is not None:
            auth.check_channel(signature, by, by_signature or "")
            channel = Channel(by)
        if not peer.known:
            peer.become_known(None)
        if request.principal is None:
            return None, channel
        return msgspec.json.decode(request.principal, type=Principal), channel
    except (SignatureError, msgspec.DecodeError, ValueError) as error:
        log.warning("a request was sent on", by=peer.address, reason=str(error))
        raise Refusal(
            ResponseCode.NO_PERMISSION,
            f"{peer.address} is not known as a node of this cluster; "
            "the broker's log says why",
        ) from error


class ForwardedPeer:
    """A client of another node, behind the connection of that node: a `Peer`."""

    take_answer = None
    forwarded = True
    known = True
    identified = True
    share = None

    def __init__(
        self,
        context: Context,
        address: str,
        packed_address: bytes,
        source: Source,
        principal: Principal | None,
    ) -> None:
        self.spans: str | None = None
        """Spans of the other node below which traces go on here."""
        self._context = context
        self._near = near = context.peer
        self.address = address
        self.source = source
        self.principal = principal
        self.packed_address = packed_address
        self.packed_advertised = near.packed_advertised
        self.id_prefix = near.id_prefix
        self.advertised = near.advertised
        self.language = near.language
        self.version = near.version

    @property
    def closed(self) -> bool:
        """Whether the node's connection has ended."""
        return self._near.closed

    @property
    def congested(self) -> bool:
        """Whether the node takes answers more slowly than it asks."""
        return self._near.congested

    def to_hold_back(self) -> None:
        """Nothing: others' requests come on the node's connection."""

    def become_known(self, principal: Principal | None) -> None:
        """Nothing: who sent the request on knows its client."""

    def respond(self, *data: Buffer) -> None:
        """Answer the node with the client's answer."""
        self._context.answer(Answer(body=b"".join(data)))

    def hold(self) -> None:
        """The request waits."""
        self._near.hold()

    def unhold(self) -> None:
        """The request goes on."""
        self._near.unhold()

    def push(self, *data: Buffer) -> None:
        """Nothing: what clients are told unasked, they are told where they connect."""

    def close(self) -> None:
        """Nothing: the connection is another's."""
