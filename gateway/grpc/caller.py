"""Asking the processors within this process, by their own headers.

A `Caller` is the `Peer` of such requests: what a connection is to those that come over
the network. So leadership, forwarding, waiting and the answers to errors are the same
for all clients.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import msgspec

from ropeway.gateway.grpc.statuses import RefusedError, code_of
from ropeway.gateway.processors.context import Context
from ropeway.gateway.processors.dispatch import begin
from ropeway.gateway.quotas import share_of
from ropeway.gateway.wire import message
from ropeway.gateway.wire.codes import ROPEWAY_VERSION, Language, ResponseCode
from ropeway.gateway.wire.frame import PREFIX, decode_envelope
from ropeway.gateway.wire.header import Header, from_fields, row_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ropeway.acl.api import Principal, Source
    from ropeway.gateway.listener import Listener
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.processors.context import Answer
    from ropeway.gateway.quotas import Share
    from ropeway.gateway.wire.frame import Buffer

H = TypeVar("H", bound=Header)

_HEADER_BYTES = 0xFFFFFF
_NO_FIELDS = msgspec.Raw(b"{}")


class Origin(Protocol):
    """A client's connection: where it comes from, and what it was told."""

    address: str
    source: Source
    packed_address: bytes
    listener: Listener
    closed: bool
    active: bool
    """Whether it was heard of lately."""
    known: bool
    """Whether somebody was known by one of its calls; always without guard."""
    share: Share | None
    """What a quota leaves to it, where there is one."""

    def abort(self) -> None:
        """Close it at once."""

    def pause_or_resume(self) -> None:
        """Look again whether to read."""

    def become_known(self, principal: Principal | None) -> None:
        """Somebody was known by a call: it may send more."""


class Reply(NamedTuple):
    """What a processor answered."""

    code: int
    """How the request went."""
    remark: str
    """A sentence for people."""
    fields: Header | msgspec.Raw
    """As a header, or, from another node, as they came."""
    body: bytes
    records: Sequence[Buffer] = ()
    """Stored messages that stand behind the body."""

    @property
    def size_bytes(self) -> int:
        """Of the body and the stored messages."""
        return len(self.body) + sum(map(len, self.records))

    def messages(self) -> Iterator[message.Message]:
        """The stored messages that it brought.

        Raises:
            MessageError: The bytes are not those of whole messages.
        """
        for piece in self.records or (self.body,):
            for stored in message.split(piece):
                yield message.decode(stored)

    def header(self, kind: type[H]) -> H:
        """The answer's own fields."""
        if isinstance(self.fields, kind):
            return self.fields
        assert isinstance(self.fields, msgspec.Raw)
        return from_fields(kind, self.fields)

    def refused(self) -> RefusedError:
        """What the client is told of an answer that is no success."""
        return RefusedError(code_of(self.code), self.remark)


class Caller:
    """Who asks, as processors see it.

    Args:
        node: Whose processors.
        origin: The client's connection.
        language: One of `Language`'s names.
        principal: Who that is, where access control is on.
    """

    __slots__ = (
        "_asked",
        "_node",
        "_opaque",
        "_origin",
        "address",
        "advertised",
        "closed",
        "id_prefix",
        "language",
        "packed_address",
        "packed_advertised",
        "principal",
        "source",
        "version",
    )

    forwarded = False
    known = True
    identified = True
    congested = False
    share = None

    def __init__(
        self,
        node: Node,
        origin: Origin,
        language: str = Language.OTHER.name,
        principal: Principal | None = None,
    ) -> None:
        listener = origin.listener
        self._node = node
        self._origin = origin
        self._asked: dict[int, asyncio.Future[Reply]] = {}
        self._opaque = 0
        self.address = origin.address
        self.source = origin.source
        self.principal = principal
        self.packed_address = origin.packed_address
        self.packed_advertised = listener.packed_advertised
        self.id_prefix = listener.id_prefix
        self.advertised = listener.advertised
        self.language = language
        self.version = ROPEWAY_VERSION
        self.closed = origin.closed

    async def ask(self, header: Header, body: bytes = b"") -> Reply:
        """Have a request worked on, and wait for its answer.

        Args:
            header: One of those that are declared as requests.
            body: What follows it.
        """
        self._opaque = opaque = self._opaque + 1
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asked[opaque] = answered
        context = Context(
            *(self._node, self, row_of(type(header)).code, opaque, False, body),
            since_s=time.monotonic(),
            header=header,
        )
        try:
            begin(context)
            return await answered
        finally:
            self._asked.pop(opaque, None)

    async def get(self, header: Header, body: bytes = b"") -> Reply:
        """Have a request done.

        Raises:
            RefusedError: It was not.
        """
        reply = await self.ask(header, body)
        if reply.code != ResponseCode.SUCCESS:
            raise reply.refused()
        return reply

    # What processors want of a peer.

    def to_hold_back(self) -> Share:
        """The connection of all its calls."""
        return share_of(self._origin)

    def become_known(self, _principal: Principal | None) -> None:
        """Nothing: the call's credentials were checked before."""

    def take_answer(self, opaque: int, answer: Answer) -> None:
        """A request is answered."""
        self._answered(
            opaque,
            Reply(
                answer.code,
                answer.remark or "",
                answer.header or _NO_FIELDS,
                bytes(answer.body),
                answer.records,
            ),
        )

    def respond(self, *data: Buffer) -> None:
        """A request is answered by another node, or counted."""
        if not data:
            return
        frame = b"".join(data)
        _, word = PREFIX.unpack_from(frame)
        body_at = PREFIX.size + (word & _HEADER_BYTES)
        came = decode_envelope(word >> 24, frame[PREFIX.size : body_at])
        self._answered(
            came.opaque,
            Reply(came.code, came.remark or "", came.ext_fields, frame[body_at:]),
        )

    def _answered(self, opaque: int, reply: Reply) -> None:
        answered = self._asked.get(opaque)
        if answered is None or answered.done():
            self.too_late(reply)
        else:
            answered.set_result(reply)

    def too_late(self, reply: Reply) -> None:
        """An answer came that nobody waits for any more."""

    def hold(self) -> None:
        """A request waits: nothing is counted here."""

    def unhold(self) -> None:
        """A request goes on."""

    def push(self, *_: Buffer) -> None:
        """Nothing can be said to the client but the answer to its call."""

    def close(self) -> None:
        """The client's connection is its own business."""
