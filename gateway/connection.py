"""One client's connection: frames come in, are begun, and answers go out once a tick.

Its parts: `Reader` cuts frames, `RequestQueue` has what cannot be begun at once,
`FlowControl` says when nothing is begun or read, `WriteBuffer` gathers answers.
`FairQueue` gives connections their turns, and `quotas` a share to each client.
"""

from __future__ import annotations

import asyncio
import time
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, cast

import msgspec
import structlog

from ropeway.acl.api import Channel, Source
from ropeway.gateway.flow_control import FlowControl
from ropeway.gateway.node.calls import ClientAnswer
from ropeway.gateway.node.fair_queueing import TURN_REQUESTS, hearing_s
from ropeway.gateway.processors.dispatch import dispatch, dispatch_send
from ropeway.gateway.processors.fast_failure import refuse_sends
from ropeway.gateway.quotas import share_of
from ropeway.gateway.request_queue import RequestQueue
from ropeway.gateway.unauthenticated import Reader
from ropeway.gateway.wire import host_port, message
from ropeway.gateway.wire.codes import RESPONSE_FLAG, language_name
from ropeway.gateway.wire.errors import FrameError
from ropeway.gateway.wire.frame import JSON, decode_envelope
from ropeway.gateway.write_buffer import WriteBuffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ropeway.acl.api import Principal
    from ropeway.gateway.listener import Listener, Outbox
    from ropeway.gateway.node.fair_queueing import FairQueue, Flow
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.quotas import Share
    from ropeway.gateway.wire.frame import Buffer, RawFrame

log = structlog.get_logger(__name__)


class Connection(WriteBuffer, asyncio.Protocol):
    """A client's connection, the `Peer` of its requests."""

    __slots__ = (
        "_flow_control",
        "_hearing_s",
        "_node",
        "_queued",
        "_reader",
        "_turns",
        "_waiting",
        "_write_buffer_bytes",
        "active",
        "address",
        "advertised",
        "id_prefix",
        "known",
        "language",
        "listener",
        "packed_address",
        "packed_advertised",
        "source",
        "version",
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
        turns: FairQueue,
        host: str,
        port: int,
    ) -> None:
        super().__init__(outbox)
        self._node = node
        limits = node.config.limits
        self._write_buffer_bytes = limits.write_buffer_bytes
        self._flow_control = FlowControl(limits.requests_in_flight)
        self._reader: Reader
        self.known = False
        self._turns = turns
        self._queued = False
        """Whether it will get a turn."""
        self._hearing_s = 0.0
        """What it took to hear it while others waited; it takes that from its turn."""
        self.listener = listener
        self.id_prefix = listener.id_prefix
        self.packed_advertised = listener.packed_advertised
        self.advertised = listener.advertised
        self.language = "OTHER"
        self.version = 0
        self.active = True
        """Whether a byte came since the last look; the sweep of idle ones resets it."""
        ip = host_port.plain_ip(host)
        self.address = host_port.join(ip, port)
        self._waiting = RequestQueue(turns, turns.flow(ip))
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
            self._waiting.move_to(self._turns.flow(principal))

    def data_received(self, data: bytes) -> None:
        """Bytes came: work on every request that is whole."""
        self.active = True
        try:
            frames = self._reader.feed(data)
            if self.share is not None:
                self.share.charge(len(frames), len(data))
            turns = self._turns
            if self._waiting or self._flow_control.paused or not turns.is_free():
                began = time.monotonic()
                self._keep(frames)
                self._hearing_s += hearing_s(len(data))
                self._hearing_s += time.monotonic() - began
                return
            rest = iter(frames)
            if not turns.sampling or self._begin_timed(rest, time.monotonic()):
                self._begin(rest, turns.tick_over_at)
            # After the log's write of what has just begun, which may answer it.
            self._outbox.expect()
            if length_hint(rest):
                self._keep([*rest])
        except FrameError as error:
            self._distrust(error)

    def _begin_timed(self, frames: Iterator[RawFrame], came_s: float) -> bool:
        """Begin one request, of which there may be none; tells whether more may be."""
        self._turns.sampling = not length_hint(frames)
        self._begin(islice(frames, 1), 0.0, came_s)
        return not self._flow_control.paused

    def _begin(
        self, frames: Iterable[RawFrame], until: float, came_s: float = 0.0
    ) -> None:
        """Begin requests until a time: one in any case."""
        flow_control = self._flow_control
        monotonic = time.monotonic
        now = monotonic()
        for serialize_type, header, body in frames:
            if (
                not self.version
                or serialize_type != JSON
                or not dispatch_send(self._node, self, header, body, came_s, now)
            ):
                envelope = decode_envelope(serialize_type, header)
                if envelope.flag & RESPONSE_FLAG:
                    answer = ClientAnswer(envelope.code, envelope.remark, body)
                    if not self._node.calls.answered(self, envelope.opaque, answer):
                        self._reader.refused()
                    continue
                if self.known:
                    self._reader.refusals = 0
                if not self.version:
                    self.version = envelope.version
                    self.language = language_name(envelope.language)
                dispatch(self._node, self, envelope, body, came_s)
            # One that was answered at once is discounted already.
            if flow_control.begin():
                self.pause_or_resume()
                return
            if (now := monotonic()) > until:
                return

    def _keep(self, frames: list[RawFrame]) -> None:
        """Let requests, or without any reading on, wait for a turn; no late sends."""
        # Who is unknown would be kept out by what others send from its address.
        if self.known and (why := self._turns.why_late(self.flow)):
            frames = self._refuse_sends(frames, why)
        if frames:
            self._waiting.add(frames)
        if not self._flow_control.paused:
            self._queue()
            self.pause_or_resume()

    def _refuse_sends(self, frames: Iterable[RawFrame], why: str) -> list[RawFrame]:
        others, answers = refuse_sends(frames, why)
        if answers:
            self.push(answers)
        return others

    def _queue(self) -> None:
        if not self._queued:
            self._queued = True
            self._turns.join(self)

    def take_turn(self, now: float, until: float) -> int:
        """Begin some of the requests that waited, and say how many."""
        self._queued = False
        begun = self._begin_waiting(now, until) if self._waiting else 0
        paused = self._flow_control.paused
        if self._waiting and not paused:
            self._queue()
        elif not paused and not self.closed and self._turns.is_full(self.flow):
            # Who has much that waits does not begin to send more.
            self._queued = True
            self._turns.hold_back(self)
        else:
            # What it is heard for comes behind this tick.
            self._turns.owe(self._hearing_s)
            self._hearing_s = 0.0
        self.pause_or_resume()
        return begun

    def _begin_waiting(self, now: float, until: float) -> int:
        if self._flow_control.paused:
            return 0
        first = self._waiting.first()
        waited_s = now - first.at
        count = length_hint(first.frames)
        try:
            if waited_s > self._turns.wait_s and self.known and not first.late:
                why = self._turns.waited(waited_s)
                others = self._refuse_sends(first.frames, why)
                first = self._waiting.keep_of_first(others, count - len(others))
                count = len(others)
            # Who is unknown has a turn for the request that makes it known.
            most = TURN_REQUESTS if self.known else 1
            if not self._turns.sampling or (
                self._begin_timed(first.frames, first.at) and time.monotonic() < until
            ):
                self._begin(islice(first.frames, most), until)
        except FrameError as error:
            self._distrust(error)
            return 0
        begun = count - length_hint(first.frames)
        self._waiting.begun(begun)
        return begun

    def _distrust(self, error: FrameError) -> None:
        log.warning("connection closed", client=self.address, reason=str(error))
        self.close()

    def pause_writing(self) -> None:
        """The client does not take what we send: read nothing more from it."""
        self._flow_control.congested = True
        self.listener.slow(self)
        self.pause_or_resume()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._flow_control.congested = False
        self.listener.caught_up(self)
        self.pause_or_resume()

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection has ended, and what was registered on it."""
        self.closed = True
        if self.share is not None:
            self.share.leave()
        self._out.clear()
        if frames := self._waiting.leave_behind():
            self._flow_control.paused = False
            self._keep(frames)
        self.flow.held_back.pop(self, None)
        self._reader.clear()
        self.listener.left(self)
        self._node.holds.forget(self)
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

    def hold(self) -> None:
        """A request waits; it does not count as being worked on."""
        self._flow_control.in_flight -= 1
        if self._flow_control.paused:
            self.pause_or_resume()

    def unhold(self) -> None:
        """A waiting request goes on."""
        self._flow_control.in_flight += 1

    @property
    def congested(self) -> bool:
        """Whether the client does not take what it is sent."""
        return self._flow_control.congested

    # -- the server's side

    @property
    def flow(self) -> Flow:
        """Whose turns it shares."""
        return self._waiting.flow

    @property
    def waiting(self) -> int:
        """Requests that came and are not begun."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """Requests being worked on."""
        return self._flow_control.in_flight

    def drain(self) -> None:
        """Begin no more requests: only those in flight are still answered."""
        self._flow_control.draining = True
        self._waiting.clear()
        self.pause_or_resume()

    def abort(self) -> None:
        """Close at once, whatever is unsent."""
        if self._transport is not None:
            self._reader.clear()
            self._transport.abort()

    def pause_or_resume(self) -> None:
        """Begin requests and read more, or not, as things are now."""
        if self._transport is None or self.closed or self._transport.is_closing():
            return
        if self._flow_control.look() and self._waiting:
            self._queue()
        held_back = self.share is not None and self.share.held_back
        self._flow_control.read(self._transport, wanted=not (self._queued or held_back))
