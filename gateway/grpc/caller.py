"""Asking the processors within this process, by their own headers.

A `Caller` is the `Peer` of such requests: what a connection is to those that come over
the network. So leadership, forwarding, waiting and the answers to errors are the same
for all clients.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from ropeway.gateway.grpc.answers import lacks, refused
from ropeway.gateway.processors.context import Answer, Context
from ropeway.gateway.processors.dispatch import begin, work
from ropeway.gateway.quotas import share_of
from ropeway.gateway.wire.codes import ROPEWAY_VERSION, Language, ResponseCode
from ropeway.gateway.wire.errors import HeaderError
from ropeway.gateway.wire.frame import PREFIX, decode_envelope
from ropeway.gateway.wire.header import Header, from_fields, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ropeway.acl.api import Principal, Source
    from ropeway.gateway.listener import Listener
    from ropeway.gateway.node.flow import Flow
    from ropeway.gateway.node.node import Node
    from ropeway.gateway.quotas import Share
    from ropeway.gateway.wire.frame import Buffer

H = TypeVar("H", bound=Header)

_HEADER_BYTES = 0xFFFFFF


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
    flow: Flow
    """Whose turns it shares, where nobody is known."""

    def abort(self) -> None:
        """Close it at once."""

    def pause_or_resume(self) -> None:
        """Look again whether to read."""

    def become_known(self, principal: Principal | None) -> None:
        """Somebody was known by a call: it may send more."""


class _Unanswered(NamedTuple):
    """A request that is not answered yet."""

    answered: asyncio.Future[Answer]
    reply: type[Header]
    """What its answer's own fields are, where another node gives it."""
    too_late: Callable[[Any, Answer], None] | None


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
        "_opaque",
        "address",
        "advertised",
        "closed",
        "id_prefix",
        "language",
        "node",
        "origin",
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
        self.node = node
        self.origin = origin
        self._asked: dict[int, _Unanswered] = {}
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

    async def ask(
        self,
        header: Header,
        body: bytes = b"",
        too_late: Callable[[Self, Answer], None] | None = None,
    ) -> Answer:
        """Have a request worked on, and wait for its answer.

        Args:
            header: One of those that are declared as requests.
            body: What follows it.
            too_late: Gets this caller, which it would keep if it had it, and the answer
                where nobody waits for it any more.
        """
        row = row_of(type(header))
        self._opaque = opaque = self._opaque + 1
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[opaque] = _Unanswered(answered, row.reply, too_late)
        context = Context(
            *(self.node, self, row.code, opaque, False, body),
            since_s=time.monotonic(),
            header=header,
        )
        # What is made here is a request that there is, and not too long.
        (work if self.node.guard is None else begin)(context)
        return await answered

    async def do(self, header: Header, body: bytes = b"") -> Answer:
        """Have a request done.

        Raises:
            RefusedError: It was not.
        """
        answer = await self.ask(header, body)
        if answer.code != ResponseCode.SUCCESS:
            raise refused(answer)
        return answer

    async def get(self, header: Header, kind: type[H], body: bytes = b"") -> H:
        """Have a request done, for its answer's own fields.

        Args:
            header: One of those that are declared as requests.
            kind: What its answer's own fields are.
            body: What follows the header.

        Raises:
            RefusedError: It was not.
            HeaderError: The answer lacks its fields.
        """
        answer = await self.ask(header, body)
        if answer.code != ResponseCode.SUCCESS:
            raise refused(answer)
        if not isinstance(answer.header, kind):
            raise lacks(kind)
        return answer.header

    # What processors want of a peer.

    def to_hold_back(self) -> Share:
        """The connection of all its calls."""
        return share_of(self.origin)

    def become_known(self, _principal: Principal | None) -> None:
        """Nothing: the call's credentials were checked before."""

    def take_answer(self, opaque: int, answer: Answer) -> None:
        """A request is answered."""
        asked = self._asked.pop(opaque)
        if not asked.answered.done():
            asked.answered.set_result(answer)
        elif asked.too_late is not None:
            asked.too_late(self, answer)

    def respond(self, *data: Buffer) -> None:
        """A request is answered by another node, or counted."""
        if not data:
            return
        frame = b"".join(data)
        _, word = PREFIX.unpack_from(frame)
        body_at = PREFIX.size + (word & _HEADER_BYTES)
        came = decode_envelope(word >> 24, frame[PREFIX.size : body_at])
        try:
            header = from_fields(self._asked[came.opaque].reply, came.ext_fields)
        except HeaderError:
            header = None  # a refusal lacks them
        answer = Answer(came.code, came.remark, header, body=frame[body_at:])
        self.take_answer(came.opaque, answer)

    def hold(self) -> None:
        """A request waits: nothing is counted here."""

    def unhold(self) -> None:
        """A request goes on."""

    def push(self, *_: Buffer) -> None:
        """Nothing can be said to the client but the answer to its call."""

    def close(self) -> None:
        """The client's connection is its own business."""
