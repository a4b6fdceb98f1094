"""A call on a stream of HTTP/2: its request is put together, its answer sent.

A call is one task, from when its request is whole until its answer is complete. Where
the client gives up, or its time is over, the task is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

import msgspec
import structlog

from ropeway.gateway.grpc.caller import Origin
from ropeway.gateway.grpc.calls import Asked
from ropeway.gateway.grpc.framing import (
    ENCODINGS,
    IDENTITY,
    CallError,
    GrpcStatus,
    begins,
    ends,
    ends_at_once,
    timeout_s,
)
from ropeway.gateway.grpc.messages import MessageReader, Request, prefixed
from ropeway.gateway.grpc.messaging_service import (
    METADATA_BYTES,
    Messaging,
    Method,
    TelemetryRefusedError,
)
from ropeway.gateway.http2.errors import ErrorCode
from ropeway.gateway.http2.stream import Stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping

    from google.protobuf.message import Message

    from ropeway.gateway.grpc.messages import Compressed
    from ropeway.gateway.http2.headers import Fields
    from ropeway.gateway.http2.receiver import Receiver
    from ropeway.gateway.http2.sender import Sender
    from ropeway.gateway.unauthenticated import Partial

log = structlog.get_logger(__name__)

_BEGINS = begins()
_ENDS = ends(GrpcStatus.OK)
_CONTENT_TYPE = "application/grpc"
_NOT_ALLOWED, _WRONG_TYPE = 405, 415


class Client(Origin, Protocol):
    """A client's connection, as its calls know it; see `served.Client`."""

    partial: Partial
    """Counts what came of requests and is not worked on."""
    receiver: Receiver
    sender: Sender
    service: Messaging
    """Answers its calls."""
    paths: dict[str, Method]
    """The methods that there are."""

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Work on a call behind this tick; until then it counts in `receiver`."""

    def ends(self, call: Exchange) -> None:
        """A call is to be cancelled, when that holds up nobody."""


_NOT_YET: Any = None
"""Before a call begins, and nothing looks."""


class _Said(NamedTuple):
    """What the metadata of a call say."""

    method: Method
    encoding: str
    timeout_s: float | None
    """How long the client waits."""


def _said(fields: Fields, paths: Mapping[str, Method]) -> _Said:
    """Read a call's metadata.

    Raises:
        CallError: They are not as they have to be.
    """
    if fields[":method"] != "POST":
        raise CallError(GrpcStatus.INTERNAL, "allowed: POST", _NOT_ALLOWED)
    if not fields.get("content-type", "").startswith(_CONTENT_TYPE):
        text = f"content type; allowed: {_CONTENT_TYPE}"
        raise CallError(GrpcStatus.INTERNAL, text, _WRONG_TYPE)
    if fields.size > METADATA_BYTES:
        raise CallError(
            GrpcStatus.RESOURCE_EXHAUSTED,
            f"metadata of {fields.size} bytes; allowed: {METADATA_BYTES}",
        )
    method = paths.get(fields[":path"])
    if method is None:
        raise CallError(GrpcStatus.UNIMPLEMENTED, "no such method")
    encoding = fields.get("grpc-encoding", IDENTITY)
    if encoding != IDENTITY and encoding not in ENCODINGS:
        allowed = ", ".join((IDENTITY, *ENCODINGS))
        raise CallError(GrpcStatus.UNIMPLEMENTED, f"grpc-encoding; allowed: {allowed}")
    waits = fields.get("grpc-timeout")
    return _Said(method, encoding, None if waits is None else timeout_s(waits))


class Exchange(Stream, eq=False):
    """One call."""

    if TYPE_CHECKING:
        connection: Client
    _fields: Fields = _NOT_YET
    _method: Method = _NOT_YET
    _reader: MessageReader = _NOT_YET
    _messages: deque[bytes | Compressed] = msgspec.field(default_factory=deque)
    """Those that are whole and not taken."""
    _held_bytes: int = 0
    """What counts of them, and of what is not whole."""
    _deadline: asyncio.TimerHandle | None = None
    _deadline_s: float | None = None
    """When that is, by the loop's clock."""
    _task: asyncio.Task[None] | None = None
    _moved: asyncio.Future[None] | None = None
    """Waited for until what was sent has found room."""
    _woken: asyncio.Future[None] | None = None
    """Waited for until more comes."""
    _began: bool = False
    """Whether something of the answer has been sent."""
    _over: bool = False
    _runs: bool = False
    """Whether the task has begun."""

    # -- what comes

    def begin(self, fields: Fields) -> None:
        """A call's metadata came."""
        self._fields = fields
        try:
            said = fields.said
            if said is None:
                said = fields.said = _said(fields, self.connection.paths)
            self._method = method = said.method
            self._reader = MessageReader(
                self.connection.service.limit_bytes, said.encoding
            )
            # Messages are counted where they are received, until they are taken.
            self.counts = method.name != "ReceiveMessage"
            if said.timeout_s is not None:
                loop = asyncio.get_running_loop()
                self._deadline_s = loop.time() + said.timeout_s
                self._deadline = loop.call_at(self._deadline_s, self._expire)
            if method.streams_in:
                self._task = self.connection.start(self._run(None))
            elif self.ended:
                self._refuse(GrpcStatus.INTERNAL, "no request; allowed: one message")
        except CallError as error:
            self._refuse(error.status, error.message, error.http_status)

    def take(self, data: bytes) -> None:
        """A part of a request came, or the end of all of them."""
        if self._over:
            return
        try:
            self._messages.extend(self._reader.feed(data))
            is_one = len(self._messages) == 1 or self._method.streams_in
            if self.ended and (self._reader.unfinished or not is_one):
                self._refuse_end()
        except CallError as error:
            self._refuse(error.status, error.message)
            return
        if self._method.streams_in:
            self.connection.receiver.keep(len(data), self)
            self._hold()
            if self._messages or self.ended:
                self._wake()
            else:
                self.connection.receiver.consumed(self)
        elif not self.ended:
            self._hold()
        else:
            if self._held_bytes:
                self._hold(0)
            self._task = self.connection.start(self._run(self._messages.pop()))

    def _refuse_end(self) -> NoReturn:
        if self._reader.unfinished:
            raise CallError(GrpcStatus.INTERNAL, "a message ends too early")
        raise CallError(
            GrpcStatus.INTERNAL, f"{len(self._messages)} messages; allowed: one"
        )

    def _hold(self, size: int | None = None) -> None:
        """Count what is kept of requests."""
        if size is None:
            size = len(self._reader.unfinished) + sum(map(len, self._messages))
        if change := size - self._held_bytes:
            self._held_bytes = size
            self.connection.partial.changed(change)

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def _commands(self) -> AsyncIterator[Request]:
        """What a client says, one after the other."""
        while True:
            while self._messages:
                data = self._messages.popleft()
                self._hold()
                if not self._messages:
                    # More may come, as nothing is kept that is whole.
                    self.connection.receiver.consumed(self)
                yield Request(
                    self._method.request, data, self.connection.service.requests
                )
            if self.ended:
                return
            self._woken = asyncio.get_running_loop().create_future()
            await self._woken

    # -- what goes

    async def _run(self, data: bytes | Compressed | None) -> None:
        """Work on a request; without one, on a stream of them."""
        self._runs = True
        method, service = self._method, self.connection.service
        asked = Asked(self.connection, self._fields, self._deadline_s)
        try:
            if data is None:
                await self._telemetry(service, asked)
                return
            request = Request(method.request, data, service.requests)
            if method.streams_out:
                await self._stream(service.stream(method, request, asked))
                return
            answer = await service.answer(method, request, asked)
            if not self._over:
                self._end()
                self.connection.sender.whole(
                    self, _BEGINS, prefixed(answer.SerializeToString()), _ENDS
                )
        except CallError as error:
            self._refuse(error.status, error.message)
        except asyncio.CancelledError:
            # Not the call, which is over then, but what it waited for.
            self._refuse(GrpcStatus.INTERNAL, "the broker failed: it gave up waiting")
            raise
        except Exception:  # nothing may stay unanswered
            log.exception("call failed")
            self._refuse(GrpcStatus.INTERNAL, "the broker failed; its log says why")
        finally:
            # What it raised has its frames, and so this call.
            self._task = None
            self.connection.receiver.working -= 1

    async def _stream(self, answers: AsyncGenerator[Message, None]) -> None:
        """Send a stream of answers."""
        async with contextlib.aclosing(answers):
            async for answer in answers:
                await self._send(answer)
        self._finish(GrpcStatus.OK)

    async def _telemetry(self, service: Messaging, asked: Asked) -> None:
        try:
            await self._stream(service.telemetry(self._commands(), asked))
        except TelemetryRefusedError as error:
            code = GrpcStatus.INVALID_ARGUMENT if error.is_bad else GrpcStatus.INTERNAL
            self._finish(code, error.message)

    async def _send(self, answer: Message) -> None:
        """Send one of several, and wait until it has found room."""
        if self._over:
            # As it is soon: whatever was to be sent goes back.
            raise asyncio.CancelledError
        if not self._began:
            self._began = True
            self.connection.sender.begin(self, _BEGINS)
        self.connection.sender.data(self, prefixed(answer.SerializeToString()))
        if self.waiting:
            self._moved = asyncio.get_running_loop().create_future()
            await self._moved

    def moved(self) -> None:
        """What was sent has found room."""
        if self._moved is not None and not self._moved.done():
            self._moved.set_result(None)

    def _finish(self, status: GrpcStatus, message: str = "") -> None:
        """Say how the call went."""
        if self._over:
            return
        self._end()
        sender = self.connection.sender
        if self._began:
            is_ok = status is GrpcStatus.OK and not message
            sender.finish(self, _ENDS if is_ok else ends(status, message))
        else:
            sender.finish(self, ends_at_once(status, message))

    def _refuse(self, status: GrpcStatus, message: str, http_status: int = 200) -> None:
        """End a call that cannot be worked on."""
        if self._over:
            return
        if self._began or self.waiting:
            self._finish(status, message)
            return
        self._end()
        self.connection.sender.finish(self, ends_at_once(status, message, http_status))

    def _expire(self) -> None:
        """The client waits no longer."""
        self._deadline = None
        if self.waiting:
            # What waits is of messages that are given back.
            self._end()
            self.connection.receiver.give_up(self, ErrorCode.CANCEL)
        else:
            self._finish(GrpcStatus.DEADLINE_EXCEEDED, "the call took too long")
        self.cancel()

    def lost(self) -> None:
        """The client has given up, or has gone."""
        self._end()
        if self._runs and self._task is not None:
            self.connection.ends(self)
        else:
            self.cancel()

    def cancel(self) -> None:
        """Work no more on it."""
        if self._task is None:
            return
        self._task.cancel()
        if not self._runs:
            # Nor will it.
            self._task = None
            self.connection.receiver.working -= 1

    def _end(self) -> None:
        self._over = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._messages.clear()
        if self._held_bytes:
            self._hold(0)
        if self.kept:
            self.connection.receiver.consumed(self)
