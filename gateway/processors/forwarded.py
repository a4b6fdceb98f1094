"""Requests of clients of another node, which came here in that node's own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import structlog

from ropeway.acl.api import Channel, Principal, Source
from ropeway.gateway.node.node_auth import Sealed, SealError
from ropeway.gateway.processors.context import LATER, Answer, Context, Later, Refusal
from ropeway.gateway.processors.dispatch import dispatch
from ropeway.gateway.processors.needs import SEALED
from ropeway.gateway.processors.registry import handles
from ropeway.gateway.wire import host_port, message
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.forward import Forward
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import FrameReader, decode_envelope

if TYPE_CHECKING:
    from ropeway.gateway.wire.frame import Buffer

log = structlog.get_logger(__name__)


@handles(Forward, SEALED, anywhere=True)
def forwarded(request: Forward, context: Context) -> Later:
    """Work on a request as if its client had sent it here."""
    principal = _believe(request, context)
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
    source = Source(host, Channel.FORWARDED)
    peer = ForwardedPeer(context, request.client, packed_address, source, principal)
    dispatch(
        *(context.node, peer, envelope, frame.body), since_s=_since(request, context)
    )
    return LATER


def _since(request: Forward, context: Context) -> float:
    """Since when nodes have had a request, by our clock; 0 where the other says not."""
    if request.held_ms < 0:
        return 0.0
    now_s = time.monotonic()
    transit = context.node.forwarder.transit
    took_ms = transit.took_ms(request.session, request.sent_ms, int(now_s * 1000))
    return now_s - (request.held_ms + took_ms) / 1000


def _believe(request: Forward, context: Context) -> Principal | None:
    """Who sent a request, as another node says; clients may say what they want.

    Raises:
        Refusal: No node of the cluster says it.
    """
    peer = context.peer
    *fields, seal, _, _ = msgspec.structs.astuple(request)
    try:
        context.node.forwarder.seal.check(
            Sealed(*fields), context.body, seal, peer.advertised
        )
        if not peer.known:
            peer.become_known(None)
        if request.principal is None:
            return None
        return msgspec.json.decode(request.principal, type=Principal)
    except (SealError, msgspec.DecodeError) as error:
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
