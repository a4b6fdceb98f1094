"""Requests for other nodes: sent on over one connection to each, and always answered.

A request travels whole, as the body of a request of our own; so does its answer. What
the client and the node that serves it say to each other is nobody's business here.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, cast

import msgspec
import structlog

from ropeway.common.reasons import reason_of
from ropeway.gateway.node.node_auth import new_session
from ropeway.gateway.node.transit_time import TransitTime
from ropeway.gateway.tracing import trace_context
from ropeway.gateway.tracing.event import Event
from ropeway.gateway.wire import host_port
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.forward import Forward
from ropeway.gateway.wire.errors import WireError
from ropeway.gateway.wire.frame import FrameReader, decode_envelope, encode_frame
from ropeway.gateway.wire.header import to_fields

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from ropeway.acl.api import Channel, Principal
    from ropeway.gateway.node.node_auth import NodeAuth
    from ropeway.gateway.tracing.spans import Spans
    from ropeway.gateway.tracing.trace_context import Parent
    from ropeway.routing.api import Broker

    _About = tuple[str, str | None, float, Channel | None, dict[Parent, int]]
    """Whose a request is, since when it is here, how it came, and its spans."""

log = structlog.get_logger(__name__)

CONNECT_S = 3.0
ANSWER_S = 60.0
"""Longer than any client lets a pull wait."""
LOOK_S = 4.0
"""A connection that something waits for is looked at so often: a machine that has lost
its power says nothing, and TCP tells nothing of it."""
MAX_UNSENT_BYTES = 64 * 1024 * 1024
MAX_OPAQUE = 0x7FFFFFFF
_NOBODY = "0.0.0.0:0"  # whose requests probes are


class ForwardingError(Exception):
    """A node did not answer; nobody knows what it did with the request."""


class Forwarder:
    """This node as a client of others.

    Args:
        max_frame_bytes: Longest answer that is accepted.
        tls: How to speak to nodes that refuse plain text.
        node_auth: What makes other nodes believe who sent a request.
        spans: What records what is sent on with a trace context, where it is to be.
    """

    def __init__(
        self,
        max_frame_bytes: int,
        tls: ssl.SSLContext | None,
        node_auth: NodeAuth,
        spans: Spans | None = None,
    ) -> None:
        self._spans = spans
        self._max_frame_bytes = max_frame_bytes
        self._tls = tls
        self.node_auth = node_auth
        self._links: dict[str, _Link] = {}
        self.others: dict[str, Broker] = {}
        """The masters of other brokers that run, by the brokers' names."""
        self.transit = TransitTime()
        """How long requests of others were on their way here."""
        self.forwarded = 0
        """Requests that other nodes were asked to work on, so far."""
        self.failed = 0
        """Those of them that were not answered."""
        self._waits: set[asyncio.Timeout] = set()
        self._ends = False

    async def forward(
        self,
        address: str,
        frame: bytes,
        client: str,
        principal: Principal | None = None,
        since_s: float = 0.0,
        *,
        waits: bool = False,
        channel: Channel | None = None,
    ) -> bytes:
        """Have another node work on a request.

        Args:
            address: The node, host:port.
            frame: The request as a whole frame.
            client: Who sent it, host:port.
            principal: Who that is; None for what a node asks for itself.
            since_s: Since when this node has it, by `time.monotonic`; 0: it does not
                matter.
            waits: It waits there for messages, and no longer than this node runs.
            channel: How it came, where no client's connection brought it.

        Returns:
            The answer as a whole frame; nothing where the request wants none.

        Raises:
            ForwardingError: It cannot be reached, or did not answer.
        """
        self.forwarded += 1
        began_ns = time.time_ns()
        spans = self._begin_spans(frame)
        name = None if principal is None else msgspec.json.encode(principal).decode()
        try:
            link = self._link(address)
            # Not by `wait_for`, which in Python 3.11 may forget that it was cancelled:
            # then the request would be answered twice.
            async with asyncio.timeout(ANSWER_S) as deadline:
                with self._ending(deadline) if waits else nullcontext():
                    answer = await link.ask(
                        frame, client, name, since_s, channel, spans
                    )
        except (OSError, TimeoutError) as error:
            self.failed += 1
            reason = reason_of(error)
            self._record(spans, address, client, began_ns, reason)
            raise ForwardingError(f"node {address} did not answer: {reason}") from error
        self._record(spans, address, client, began_ns)
        return answer

    def _begin_spans(self, frame: bytes) -> dict[Parent, int]:
        """Ids of spans, below which the other node goes on."""
        if self._spans is None:
            return {}
        return {one: self._spans.new_id() for one in trace_context.found_in(frame)}

    def _record(
        self,
        spans: dict[Parent, int],
        address: str,
        client: str,
        began_ns: int,
        failure: str = "",
    ) -> None:
        about = {"server.address": address, "client.address": client}
        times_ns = began_ns, time.time_ns()
        for parent, span_id in spans.items():
            assert self._spans is not None, "it gave the ids"
            event = Event("forward", address, *times_ns, about, failure, span_id)
            self._spans.record(parent, event)

    @contextmanager
    def _ending(self, deadline: asyncio.Timeout) -> Iterator[None]:
        """Wait no longer than this node runs."""
        if self._ends:
            deadline.reschedule(0.0)
        self._waits.add(deadline)
        try:
            yield
        finally:
            self._waits.discard(deadline)

    def end_waits(self) -> None:
        """Give up, now and from now on, what waits for messages at other nodes."""
        self._ends = True
        for deadline in self._waits:
            deadline.reschedule(0.0)

    async def ask(
        self, address: str, code: RequestCode, body: bytes, client: str
    ) -> bytes:
        """Ask another node something of our own; the body of its answer.

        Args:
            address: As of `forward`.
            code: A request without fields.
            body: Of the request.
            client: For whom, host:port.

        Raises:
            ForwardingError: It refused, and the text says why; or as of `forward`.
        """
        frame = encode_frame(code, 0, fields={}, body=body)
        data = await self.forward(address, frame, client)
        try:
            (answer,) = FrameReader(self._max_frame_bytes).feed(data)
            envelope = decode_envelope(answer.serialize_type, answer.header)
        except (WireError, ValueError) as error:
            raise ForwardingError(str(error)) from error
        if envelope.code:
            raise ForwardingError(envelope.remark or f"code {envelope.code}")
        return bytes(answer.body)

    def _link(self, address: str) -> _Link:
        link = self._links.get(address)
        if link is None or link.closed:
            link = _Link(self._max_frame_bytes, address, self.node_auth)
            link.connect(self._tls)
            self._links[address] = link
        return link

    async def close(self) -> None:
        """Close every connection; who waits gets an error."""
        links, self._links = self._links, {}
        await asyncio.gather(*(link.close() for link in links.values()))


class _Link(asyncio.Protocol):
    """A connection to another node; what it is asked before it is made goes first."""

    def __init__(self, max_frame_bytes: int, address: str, node_auth: NodeAuth) -> None:
        self._reader = FrameReader(max_frame_bytes)
        self._address = address
        self._node_auth = node_auth
        self._session = new_session()
        self._numbers = itertools.count()
        self._opaques = itertools.count()
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._transport: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._unsent: list[tuple[int, bytes, _About]] = []
        """What it was asked before it was made."""
        self._looking: asyncio.TimerHandle | None = None
        self._heard = self._is_probed = False
        """Whether something came, and a probe went, since it was looked at."""
        self._why = "the connection was lost"
        self.closed = False

    def connect(self, tls: ssl.SSLContext | None) -> None:
        """Begin to make the connection."""
        host, port = host_port.split(self._address)
        connecting = self._connect(host, port, tls)
        self._connecting = asyncio.get_running_loop().create_task(connecting)

    async def _connect(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                await loop.create_connection(lambda: self, host, port, ssl=tls)
        except Exception as error:  # noqa: BLE001 - who waits is told, whatever it is
            if self._transport is None:
                self.connection_lost(error)
            else:
                self._transport.abort()

    async def ask(
        self,
        frame: bytes,
        client: str,
        principal: str | None,
        since_s: float,
        channel: Channel | None,
        spans: dict[Parent, int],
    ) -> bytes:
        """Send a request on, and wait for what answers it."""
        if self.closed:
            raise ConnectionResetError("the connection was lost")
        transport = self._transport
        if transport and transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            raise ConnectionError("it takes requests too slowly")
        opaque = next(self._opaques) & MAX_OPAQUE
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[opaque] = answered
        about = client, principal, since_s, channel, spans
        if transport is not None:
            self._send(transport, opaque, frame, about)
        else:
            # Who awaited it here would be overtaken by who comes just when it is made.
            self._unsent.append((opaque, frame, about))
        try:
            return await answered
        finally:
            self._asked.pop(opaque, None)

    def _send(
        self, transport: asyncio.Transport, opaque: int, frame: bytes, about: _About
    ) -> None:
        if self._looking is None:
            self._heard = self._is_probed = False
            self._look_later()
        self._write(transport, opaque, frame, about)

    def _write(
        self, transport: asyncio.Transport, opaque: int, frame: bytes, about: _About
    ) -> None:
        transport.write(
            encode_frame(
                RequestCode.ROPEWAY_FORWARD,
                opaque,
                fields=self._fields(frame, *about),
                body=frame,
            )
        )

    def _fields(
        self,
        frame: bytes,
        client: str,
        principal: str | None,
        since_s: float,
        channel: Channel | None,
        spans: dict[Parent, int],
    ) -> dict[str, str]:
        number = next(self._numbers)
        said = self._node_auth.say(
            client, self._address, self._session, number, principal
        )
        signature = self._node_auth.sign(said, frame)
        now_s = time.monotonic()
        by = None
        if channel is not None:
            by = self._node_auth.sign_channel(signature, channel.value)
        return to_fields(
            Forward(
                **msgspec.structs.asdict(said),
                signature=signature,
                held_ms=int((now_s - since_s) * 1000) if since_s else -1,
                sent_ms=int(now_s * 1000),
                channel=channel and channel.value,
                channel_signature=by,
                spans=trace_context.tell(spans) or None,
            )
        )

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._looking = loop.call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Probe a node that says nothing; give it up where it says nothing to that."""
        self._looking = None
        transport = self._transport
        if self.closed or not self._asked or transport is None:
            return
        if self._heard:
            self._heard = self._is_probed = False
        elif self._is_probed:
            self._why = f"it has said nothing for {2 * LOOK_S:.0f} s"
            transport.abort()
            return
        else:
            self._is_probed = True
            # A request of nothing is refused, and that is an answer.
            opaque = next(self._opaques) & MAX_OPAQUE
            self._write(transport, opaque, b"", (_NOBODY, None, 0.0, None, {}))
        self._look_later()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        unsent, self._unsent = self._unsent, []
        for opaque, frame, about in unsent:
            if opaque in self._asked:
                self._send(self._transport, opaque, frame, about)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        try:
            for serialize_type, header, body in self._reader.feed(data):
                envelope = decode_envelope(serialize_type, header)
                answered = self._asked.get(envelope.opaque)
                if answered is None or answered.done():
                    continue
                if envelope.code:
                    answered.set_exception(ConnectionRefusedError(envelope.remark))
                else:
                    answered.set_result(body)
        except WireError as error:
            log.warning("connection to a node closed", reason=str(error))
            assert self._transport is not None, "it has brought something"
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        if self._looking is not None:
            self._looking.cancel()
        for answered in self._asked.values():
            if not answered.done():
                answered.set_exception(ConnectionResetError(str(error or self._why)))

    async def close(self) -> None:
        """End it; who waits gets an error."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._transport is not None:
            self._transport.close()
        elif not self.closed:
            self.connection_lost(None)
