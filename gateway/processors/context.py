"""What a processor is given, and what it may answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec
import structlog

from ropeway.acl.api import Principal, Source, Verdict
from ropeway.gateway.node import names
from ropeway.gateway.node.link import Link
from ropeway.gateway.node.node import Node
from ropeway.gateway.node.pending_sends import Destination
from ropeway.gateway.processors.errors import code_of
from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    RequestCode,
    ResponseCode,
)
from ropeway.gateway.wire.frame import Buffer, Envelope, encode_frame
from ropeway.gateway.wire.header import (
    ROWS,
    Header,
    decode_request,
    to_fields,
)
from ropeway.gateway.wire.request_credentials import Claims
from ropeway.gateway.wire.unreadable import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from ropeway.acl.api import Need
    from ropeway.gateway.node.accounts import Held
    from ropeway.gateway.node.fair_queueing import Slices
    from ropeway.storage.api import Partition, RecordParts

log = structlog.get_logger(__name__)

_MAX_REMARK = 1000
_ALLOWED = Verdict(allowed=True)


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """A request cannot be done; the code and the sentence go to the client.

    Args:
        code: What the client's logic reads.
        remark: What people read: what came, and what is allowed.
    """

    def __init__(self, code: ResponseCode, remark: str) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark


class NotPreparedError(Exception):
    """A send's topic is not there yet, or its batch too large to be made at once.

    Args:
        destination: What others that are sent there wait for meanwhile.
        make: Makes what is missing, as the sender's; raises where that may not be.
    """

    def __init__(
        self, destination: Destination, make: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__("a topic or a batch has to be made first")
        self.destination = destination
        self.make = make


class Made(NamedTuple):
    """The records of a large batch."""

    partition: Partition
    queue_id: int
    offset: int
    """The first record's, if nobody else has appended."""
    store_ms: int
    records: Sequence[RecordParts]


class ForMasterError(Exception):
    """A slave read a request that only the node that leads can answer."""


class Share(Protocol):
    """What a quota leaves to a connection."""

    def is_of(self, principal: Principal) -> bool:
        """Count it as somebody's; False where one more is too many."""

    def leave(self) -> None:
        """Count nothing any more."""


class Peer(Link, Protocol):
    """The connection a request came on."""

    @property
    def share(self) -> Share | None:
        """What a quota leaves to it, where there is one."""

    forwarded: bool
    """Whether another node sent the request on, from a client of its own."""
    source: Source
    """Where its requests come from, for access control."""
    known: bool
    """Whether somebody was known by one of its requests; always without guard."""
    identified: bool
    """Whether it is known who sends its requests: they need not say so themselves."""
    principal: Principal | None
    """Who that is, as another node says and has signed, or the gRPC call."""
    packed_address: bytes
    """The client's address and port, as stored messages carry them."""
    packed_advertised: bytes
    """The address and port that clients of this listener are told, likewise."""
    id_prefix: bytes
    """The advertised address and port, as offsetMsgIds carry them."""
    advertised: str
    """The same as host:port."""

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""

    @property
    def congested(self) -> bool:
        """Whether the client takes answers more slowly than it asks."""

    def become_known(self, principal: Principal | None) -> None:
        """Somebody was: it may send more. None: who needs no name."""

    def to_hold_back(self) -> Held | None:
        """What is not read while a quota is used up; None: nothing of the client's."""

    @property
    def take_answer(self) -> Callable[[int, Answer], None] | None:
        """Takes the answer to an opaque as data; None: answers are sent as frames."""

    def respond(self, *data: Buffer) -> None:
        """Send a whole answer as a frame in pieces, likewise; nothing: count it."""

    def hold(self) -> None:
        """The request waits; it does not count as being worked on."""

    def unhold(self) -> None:
        """The request goes on."""


class Later(Enum):
    """The answer comes later, by `Context.answer` or `Peer.respond`."""

    LATER = 0


LATER: Literal[Later.LATER] = Later.LATER


class Answer(msgspec.Struct, frozen=True, gc=False):
    """An answer that is more than a header."""

    code: int = ResponseCode.SUCCESS
    remark: str | None = None
    header: Header | None = None
    fields: dict[str, str] | None = None
    """Fields that no header declares."""
    body: Buffer = b""
    records: Sequence[Buffer] = ()
    """Stored messages, which stand behind the body: slices of the log."""
    template: Callable[[Any, int], bytes] | None = None
    """Makes the frame but for the messages, of a frequent answer and an opaque."""

    def frame(self, opaque: int) -> bytes:
        """Make the frame that answers a request.

        Raises:
            HeaderError: The header is too long for one.
        """
        fields = to_fields(self.header) if self.header is not None else None
        if self.fields is not None:
            fields = {**(fields or {}), **self.fields}
        return encode_frame(
            self.code,
            opaque,
            flag=RESPONSE_FLAG,
            fields=fields,
            body=b"".join((self.body, *self.records)) if self.records else self.body,
            remark=self.remark,
        )


def shows(node: Node, principal: Principal | None, topic: str) -> bool:
    """Whether lists show a topic to somebody; to nobody: where nothing is guarded."""
    return (
        principal is None
        or principal.super
        or not names.is_for_superusers(topic, node.config.cluster)
    )


class Context(msgspec.Struct, gc=False):
    """One request, and what it may use."""

    node: Node
    peer: Peer
    code: int
    opaque: int
    one_way: bool
    body: bytes
    header: Any = None
    """The request's own fields, a `Header`, once they are read."""
    claims: Claims | None = None
    """What its sender says of itself, where the header was read at once."""
    came_s: float = 0.0
    """When it came, by `time.monotonic`, where it is timed; else 0."""
    since_s: float = 0.0
    """Since when nodes hold it, by `time.monotonic`; 0 where nothing can hold it."""
    as_slave: bool = False
    """Whether this node reads for the client what another one writes."""
    rule_changes: int = 0
    """How often rules of access had changed when it was let in."""
    principal: Principal | None = None
    """Who sent it; None where nothing is guarded, or nobody knows in a dry run."""
    envelope: Envelope | None = None
    """What came in a frame; None where nothing was put into one."""
    said: Any = None
    """What its body says, where that is looked at more than once."""
    opened: str | None = None
    """The topic of which it has waited for a queue."""
    waited_for: Destination | None = None
    """What it has waited for as a send, behind others."""
    made: Made | None = None
    """What has been made of it, where it is a large batch."""
    charged: bool = False
    """Whether its topic's quota has been charged for it, as a send."""

    def read(self) -> Any:
        """Read the request's own fields, if nobody has.

        Raises:
            HeaderError: They cannot be read.
        """
        if self.header is None and self.envelope is not None:
            row, fields = ROWS[self.code], self.envelope.ext_fields
            try:
                self.header = row.decode(fields)
            except UNREADABLE:
                # What Java forgives is read, and what is wrong is said.
                self.header = decode_request(row, fields)
        return self.header

    def slices(self) -> Slices:
        """What work that takes long is done in."""
        whose = self.principal or self.peer.source.address
        return self.node.fair_queue.slices(whose, len(self.body))

    def shows(self, topic: str) -> bool:
        """Whether a list of topics shows this one to who sent the request."""
        return shows(self.node, self.principal, topic)

    async def require(self, *needs: Need) -> None:
        """Refuse the request unless its sender may do all this, too.

        For what is known only after a look into what is stored.

        Raises:
            Refusal: The sender may not.
        """
        verdict = await self._judge(needs)
        if not verdict.allowed:
            raise Refusal(ResponseCode.NO_PERMISSION, verdict.remark)

    async def may(self, *needs: Need) -> bool:
        """Whether the request's sender may do all this, too.

        For what is found by a number: who may not see it is answered as if it were not
        there, so that nobody learns what it belongs to.
        """
        return (await self._judge(needs)).allowed

    async def _judge(self, needs: tuple[Need, ...]) -> Verdict:
        guard = self.node.guard
        if guard is None:
            return _ALLOWED
        return await guard.permit(
            self.principal, needs, self.peer.source, request_name(self.code)
        )

    def spawn(
        self,
        work: Coroutine[None, None, None],
        fail: Callable[[Exception], None] | None = None,
    ) -> None:
        """Go on with the request in a task; what that raises is the request's answer.

        Args:
            work: What is left to do, the answer included.
            fail: What to do with an error; `fail` of this request, if left out.
        """
        self.node.tasks.start(_finish(work, fail or self.fail))

    def frame(self) -> bytes:
        """Make the request's frame, for another node."""
        came = self.envelope
        return encode_frame(
            self.code,
            self.opaque,
            flag=came.flag if came else ONE_WAY_FLAG if self.one_way else 0,
            fields=came.ext_fields if came else to_fields(self.header),
            body=self.body,
            version=came.version if came else self.peer.version,
        )

    def respond(self, *data: Buffer) -> None:
        """Answer the request, once, with a whole frame in pieces."""
        if self.came_s:
            self.node.latencies.observe(self.code, self.came_s)
        if self.one_way:
            self.peer.respond()
        else:
            self.peer.respond(*data)

    def answer(self, result: Header | Answer) -> None:
        """Answer the request, once; a one-way request is only counted as done."""
        if self.came_s:
            self.node.latencies.observe(self.code, self.came_s)
        peer, opaque = self.peer, self.opaque
        if self.one_way:
            peer.respond()
            return
        answer = result if isinstance(result, Answer) else Answer(header=result)
        if (take := peer.take_answer) is not None:
            take(opaque, answer)
        elif (template := answer.template) is not None:
            peer.respond(template(answer, opaque), *answer.records)
        else:
            peer.respond(answer.frame(opaque))

    def refuse(self, code: ResponseCode, remark: str) -> None:
        """Answer the request with an error, once."""
        # Remarks quote what came, and that may be as long as a frame.
        self.answer(Answer(code, f"{remark:.{_MAX_REMARK}}"))

    def fail(self, error: Exception) -> None:
        """Answer the request with what an error means for the client, once."""
        if isinstance(error, Refusal):
            self.refuse(error.code, error.remark)
        elif code := code_of(error):
            self.refuse(code, str(error))
        else:
            name = request_name(self.code)
            # First of all: where the log cannot be written, either, that raises.
            self.refuse(
                ResponseCode.SYSTEM_ERROR,
                f"the broker failed at {name}; its log says why",
            )
            log.error(
                "request failed",
                request=name,
                client=self.peer.address,
                exc_info=error,
            )


async def _finish(
    work: Coroutine[None, None, None], fail: Callable[[Exception], None]
) -> None:
    try:
        await work
    except asyncio.CancelledError:
        # Who cancels a request's task answers it, or its connection is no more.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        fail(RuntimeError("what the request waited for was cancelled"))
    except Exception as error:  # noqa: BLE001 - turned into an answer
        fail(error)


@lru_cache(maxsize=1024)
def request_name(code: int) -> str:
    """A request code with its name, for people."""
    try:
        return f"{code} {RequestCode(code).name}"
    except ValueError:
        return str(code)
