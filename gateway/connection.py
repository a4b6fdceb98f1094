"""One client's connection: frames come in, are begun, and answers go out once a tick.

Its parts: `Reader` cuts frames, `RequestScheduler` says when requests are begun and
when more is read, `WriteBuffer` gathers answers, `quotas` has each client's share.
"""

from __future__ import annotations

import asyncio
import time
from operator import length_hint
from typing import TYPE_CHECKING, cast

import msgspec
import structlog

from ropeway.acl.api import Channel, Source
from ropeway.gateway.node.calls import ClientAnswer
from ropeway.gateway.node.latencies import SAMPLE_EVERY_S
from ropeway.gateway.processors.context import Context
from ropeway.gateway.processors.dispatch import begin, work
from ropeway.gateway.quotas import share_of
from ropeway.gateway.request_scheduler import RequestScheduler
from ropeway.gateway.unauthenticated import Reader
from ropeway.gateway.wire import codes, host_port, message
from ropeway.gateway.wire.commands.send import SendMessageV2
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import JSON, decode_envelope
from ropeway.gateway.wire.send_codec import read_send

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ropeway.acl.api import Principal
    from ropeway.gateway.listener import Listener
    from ropeway.gateway.node.fair_queueing import FairQueue
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.quotas import Share
    from ropeway.gateway.wire.frame import Buffer, RawFrame
    from ropeway.gateway.write_buffer import Outbox

log = structlog.get_logger(__name__)

_SEND = int(codes.RequestCode.SEND_MESSAGE_V2)


class Connection(RequestScheduler, asyncio.Protocol):
    """A client's connection, the `Peer` of its requests."""

    __slots__ = (
        *("_node", "_write_buffer_bytes", "active", "address", "advertised"),
        *("congested", "id_prefix", "language", "listener", "packed_address"),
        *("packed_advertised", "source", "version"),
    )

    take_answer = None
    forwarded = False
    identified = False
    principal: Principal | None = None

    def __init__(
        self,
        node: Node,
        listener: Listener,
        outbox: Outbox,
        fair_queue: FairQueue,
        host: str,
        port: int,
    ) -> None:
        limits, ip = node.config.limits, host_port.plain_ip(host)
        flow = fair_queue.flow(ip)
        super().__init__(outbox, fair_queue, flow, limits.requests_in_flight)
        self._node = node
        self._write_buffer_bytes = limits.write_buffer_bytes
        self.listener = listener
        self.id_prefix = listener.id_prefix
        self.packed_advertised = listener.packed_advertised
        self.advertised = listener.advertised
        self.language = "OTHER"
        self.version = 0
        self.congested = False
        """Whether the client does not take what it is sent."""
        self.active = True
        """Whether a byte came since the last look; the sweep of idle ones resets it."""
        self.address = host_port.join(ip, port)
        self.source = Source(ip, Channel.REMOTING)
        self.packed_address = message.pack_host(ip, port)

    # -- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(self._write_buffer_bytes)
        if certificate := transport.get_extra_info("peercert"):
            self.source = msgspec.structs.replace(self.source, certificate=certificate)
        self.listener.joined(self)
        self._reader = Reader(self.listener.unauthenticated, self)

    def to_hold_back(self) -> Share:
        """What is not read while a quota is used up."""
        return share_of(self)

    def become_known(self, principal: Principal | None) -> None:
        """Somebody is known by a request: it may send more from now on."""
        self._reader.became_known()
        if principal is not None:
            self._waiting.move_to(self._fair_queue.flow(principal))

    def data_received(self, data: bytes) -> None:
        """Bytes came: work on every request that is whole."""
        self.active = True
        try:
            frames = self._reader.feed(data)
            if self.share is not None:
                self.share.charge(len(frames), len(data))
            fair_queue, paused = self._fair_queue, self._flow_control.paused
            if self._waiting.count or paused or not fair_queue.is_free():
                self._keep_heard(frames, len(data))
                return
            rest = iter(frames)
            self._begin(rest, fair_queue.tick_over_at)
            # After the log's write of what has just begun, which may answer it.
            self._outbox.expect()
            if length_hint(rest):
                self._keep([*rest])
        except FrameError as error:
            self._distrust(error)

    def _begin(
        self, frames: Iterable[RawFrame], until: float, waited_since: float = 0.0
    ) -> None:
        """Begin requests until a time: one in any case, timed if it is the sample's."""
        node, flow_control, fair_queue = (
            self._node,
            self._flow_control,
            self._fair_queue,
        )
        monotonic = time.monotonic
        now = monotonic()
        for frame in frames:
            context = self._read(frame, now)
            if context is None:
                continue
            if now >= fair_queue.sample_at:
                fair_queue.sample_at = now + SAMPLE_EVERY_S
                context.came_s = waited_since or now
            if context.envelope is None and node.guard is None:
                work(context)  # a send's code is known, and it may be long
            else:
                begin(context)
            # One that was answered at once is discounted already.
            flow_control.in_flight += 1
            if flow_control.in_flight >= flow_control.limit or flow_control.congested:
                self.pause_or_resume()
                return
            if (now := monotonic()) > until:
                return

    def _read(self, frame: RawFrame, now: float) -> Context | None:
        """The request in a frame; None where it answers what the client was asked."""
        serialize_type, header, body = frame
        if serialize_type == JSON and self.version:
            sent = read_send(header, SendMessageV2)
            if sent is not None:
                opaque, one_way, send, claims = sent
                return Context(
                    self._node, self, _SEND, opaque, one_way, body, send, claims, 0, now
                )
        envelope = decode_envelope(serialize_type, header)
        if envelope.flag & codes.RESPONSE_FLAG:
            answer = ClientAnswer(envelope.code, envelope.remark, body)
            if not self._node.calls.answered(self, envelope.opaque, answer):
                self._reader.refused()
            return None
        if self.known:
            self._reader.refusals = 0
        if not self.version:
            self.version = envelope.version
            self.language = codes.language_name(envelope.language)
        node, code, opaque = self._node, envelope.code, envelope.opaque
        one_way = bool(envelope.flag & codes.ONE_WAY_FLAG)
        return Context(
            node, self, code, opaque, one_way, body, since_s=now, envelope=envelope
        )

    def _distrust(self, error: FrameError) -> None:
        log.warning("connection closed", client=self.address, reason=str(error))
        self.close()

    def pause_writing(self) -> None:
        """The client does not take what we send: read nothing more from it."""
        self.congested = self._flow_control.congested = True
        self.listener.slow(self)
        self.pause_or_resume()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self.congested = self._flow_control.congested = False
        self.listener.caught_up(self)
        self.pause_or_resume()

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection has ended, and what was registered on it."""
        self.closed = True
        if self.share is not None:
            self.share.leave()
        self._out.clear()
        self._leave_turns()
        self._reader.left()
        self.listener.left(self)
        self._node.pull_hold.forget(self)
        self._node.pop.polling.forget(self)
        self._node.calls.disconnected(self)
        self._node.clients.disconnected(self)

    # -- the processors' side

    def respond(self, *data: Buffer) -> None:
        """Send a whole answer at the end of this tick; without data, count only."""
        flow_control = self._flow_control
        flow_control.in_flight -= 1
        if data:
            self.push(*data)
        if flow_control.paused:
            self.pause_or_resume()
        if not self.known:
            self._reader.refused()

    # -- the server's side

    @property
    def unsent_bytes(self) -> int:
        """What the transport has yet to write."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def abort(self) -> None:
        """Close at once, whatever is unsent."""
        if self._transport is not None:
            self._reader.clear()
            self._transport.abort()
