"""A call on a stream of HTTP/2: its request is put together, its answer sent.

A call is one task, from when its request is whole until its answer is complete. Where
the client gives up, or its time is over, the task is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING

import structlog

from ropeway.gateway.grpc.framing import (
    ENCODINGS,
    IDENTITY,
    CallError,
    GrpcStatus,
    MessageReader,
    begins,
    ends,
    ends_at_once,
    prefixed,
    timeout_s,
)
from ropeway.gateway.grpc.messaging_service import (
    METADATA_BYTES,
    Asked,
    Messaging,
    Method,
    TelemetryRefusedError,
)
from ropeway.gateway.grpc.request_reader import Request
from ropeway.gateway.http2.errors import ErrorCode
from ropeway.gateway.http2.stream import Stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.protobuf.message import Message

    from ropeway.gateway.grpc.framing import Compressed
    from ropeway.gateway.grpc.served import Client
    from ropeway.gateway.http2.headers import Fields

log = structlog.get_logger(__name__)

_BEGINS = begins()
_ENDS = ends(GrpcStatus.OK)
_CONTENT_TYPE = "application/grpc"
_NOT_ALLOWED, _WRONG_TYPE = 405, 415


class Exchange(Stream):
    """One call.

    Args:
        client: Its connection.
        stream_id: Its number there.
        window: What the client takes of the answer, at first.
        service: Answers it.
        paths: The methods that there are.
    """

    __slots__ = (
        "_began",
        "_client",
        "_deadline",
        "_fields",
        "_held_bytes",
        "_messages",
        "_method",
        "_moved",
        "_over",
        "_owed",
        "_paths",
        "_reader",
        "_runs",
        "_service",
        "_task",
        "_woken",
    )

    def __init__(
        self,
        client: Client,
        stream_id: int,
        window: int,
        service: Messaging,
        paths: dict[str, Method],
    ) -> None:
        super().__init__(client, stream_id, window)
        self._client = client
        self._service = service
        self._paths = paths
        self._fields: Fields
        self._method: Method
        self._reader: MessageReader
        self._messages: deque[bytes | Compressed] = deque()
        """Those that are whole and not taken."""
        self._owed = 0
        """What came, and has not been consumed."""
        self._held_bytes = 0
        """What counts of them, and of what is not whole."""
        self._deadline: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._moved: asyncio.Future[None] | None = None
        """Waited for until what was sent has found room."""
        self._woken: asyncio.Future[None] | None = None
        """Waited for until more comes."""
        self._began = False
        """Whether something of the answer has been sent."""
        self._over = False
        self._runs = False
        """Whether the task has begun."""

    # -- what comes

    def begin(self, fields: Fields) -> None:
        """A call's metadata came."""
        self._fields = fields
        if fields[":method"] != "POST":
            self._refuse(GrpcStatus.INTERNAL, "allowed: POST", _NOT_ALLOWED)
        elif not fields.get("content-type", "").startswith(_CONTENT_TYPE):
            text = f"content type; allowed: {_CONTENT_TYPE}"
            self._refuse(GrpcStatus.INTERNAL, text, _WRONG_TYPE)
        else:
            try:
                self._prepare(fields)
            except CallError as error:
                self._refuse(error.status, error.message)

    def _prepare(self, fields: Fields) -> None:
        if fields.size > METADATA_BYTES:
            raise CallError(
                GrpcStatus.RESOURCE_EXHAUSTED,
                f"metadata of {fields.size} bytes; allowed: {METADATA_BYTES}",
            )
        method = self._paths.get(fields[":path"])
        if method is None:
            raise CallError(GrpcStatus.UNIMPLEMENTED, "no such method")
        encoding = fields.get("grpc-encoding", IDENTITY)
        if encoding != IDENTITY and encoding not in ENCODINGS:
            allowed = ", ".join((IDENTITY, *ENCODINGS))
            raise CallError(
                GrpcStatus.UNIMPLEMENTED, f"grpc-encoding; allowed: {allowed}"
            )
        self._method = method
        self._reader = MessageReader(self._service.limit_bytes, encoding)
        # Messages are counted where they are received, until they are taken.
        self.counts = method.name != "ReceiveMessage"
        if "grpc-timeout" in fields:
            self._deadline = asyncio.get_running_loop().call_later(
                timeout_s(fields["grpc-timeout"]), self._expire
            )
        if method.streams_in:
            self._start()
        elif self.ended:
            raise CallError(GrpcStatus.INTERNAL, "no request; allowed: one message")

    def take(self, data: bytes) -> None:
        """A part of a request came, or the end of all of them."""
        if self._over:
            self.consumed(len(data))
            return
        try:
            self._messages.extend(self._reader.feed(data))
            if self.ended:
                self._check_end()
        except CallError as error:
            self.consumed(len(data))
            self._refuse(error.status, error.message)
            return
        if self._method.streams_in:
            self._owed += len(data)
            self._hold()
            if self._messages or self.ended:
                self._wake()
            else:
                self._pay()
        else:
            self.consumed(len(data))
            if self.ended:
                self._hold(0)
                self._start(self._messages.pop())
            else:
                self._hold()

    def _check_end(self) -> None:
        if self._reader.unfinished:
            raise CallError(GrpcStatus.INTERNAL, "a message ends too early")
        if not self._method.streams_in and len(self._messages) != 1:
            raise CallError(
                GrpcStatus.INTERNAL,
                f"{len(self._messages)} messages; allowed: one",
            )

    def _hold(self, size: int | None = None) -> None:
        """Count what is kept of requests."""
        if size is None:
            size = self._reader.unfinished + sum(map(len, self._messages))
        if change := size - self._held_bytes:
            self._held_bytes = size
            self._client.partial.changed(change)

    def _pay(self) -> None:
        """Let more come, as nothing is kept that is whole."""
        owed, self._owed = self._owed, 0
        self.consumed(owed)

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
                    self._pay()
                yield self._request(data)
            if self.ended:
                return
            self._woken = asyncio.get_running_loop().create_future()
            await self._woken

    # -- what goes

    def _start(self, data: bytes | Compressed | None = None) -> None:
        """Begin to work on a request; without one, on a stream of them."""
        self._client.begins()
        self._client.receiver.working += 1
        self._task = asyncio.get_running_loop().create_task(self._run(data))

    async def _run(self, data: bytes | Compressed | None) -> None:
        self._runs = True
        try:
            await (
                self._telemetry() if data is None else self._work(self._request(data))
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
            self._client.receiver.working -= 1

    def _asked(self) -> Asked:
        remaining_s = None
        if self._deadline is not None:
            now_s = asyncio.get_running_loop().time()
            remaining_s = max(0.0, self._deadline.when() - now_s)
        return Asked(self._client, self._fields.items(), remaining_s)

    def _request(self, data: bytes | Compressed) -> Request:
        limits = self._service.node.config.requests
        return Request(self._method.request, data, limits)

    async def _work(self, request: Request) -> None:
        method = self._method
        if method.streams_out:
            async with contextlib.aclosing(
                self._service.stream(method, request, self._asked())
            ) as answers:
                async for answer in answers:
                    await self._send(answer)
            self._finish(GrpcStatus.OK)
            return
        answer = await self._service.answer(method, request, self._asked())
        if not self._over:
            self._end()
            self._client.sender.whole(
                self, _BEGINS, prefixed(answer.SerializeToString()), _ENDS
            )

    async def _telemetry(self) -> None:
        try:
            async with contextlib.aclosing(
                self._service.telemetry(self._commands(), self._asked())
            ) as said:
                async for command in said:
                    await self._send(command)
            self._finish(GrpcStatus.OK)
        except TelemetryRefusedError as error:
            code = GrpcStatus.INVALID_ARGUMENT if error.is_bad else GrpcStatus.INTERNAL
            self._finish(code, error.message)

    async def _send(self, answer: Message) -> None:
        """Send one of several, and wait until it has found room."""
        if self._over:
            return
        if not self._began:
            self._began = True
            self._client.sender.begin(self, _BEGINS)
        self._client.sender.data(self, prefixed(answer.SerializeToString()))
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
        sender = self._client.sender
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
        self._client.sender.finish(self, ends_at_once(status, message, http_status))

    def _expire(self) -> None:
        """The client waits no longer."""
        self._deadline = None
        if self.waiting:
            # What waits is of messages that are given back.
            self._end()
            self._client.receiver.give_up(self, ErrorCode.CANCEL)
        else:
            self._finish(GrpcStatus.DEADLINE_EXCEEDED, "the call took too long")
        self._cancel()

    def lost(self) -> None:
        """The client has given up, or has gone."""
        self._end()
        self._cancel()

    def _cancel(self) -> None:
        if self._task is None or self._task.done():
            return
        self._task.cancel()
        if not self._runs:
            # Nor will it.
            self._client.receiver.working -= 1

    def _end(self) -> None:
        self._over = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._messages.clear()
        self._hold(0)
        owed, self._owed = self._owed, 0
        self._client.receiver.consumed(owed)
