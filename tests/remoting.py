"""A raw remoting client for tests, and a node to talk to.

It sends what it is told, wrong or right, and shows every frame that comes back.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop
from msgspec import structs

from ropeway.gateway.app import App
from ropeway.gateway.config import Config, LimitsConfig, ListenerConfig, LogConfig
from ropeway.gateway.request_limits import UnauthenticatedConfig
from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RESPONSE_FLAG,
    Language,
    RequestCode,
)
from ropeway.gateway.wire.frame import (
    PREFIX,
    FrameReader,
    decode_envelope,
    encode_frame,
)
from ropeway.gateway.wire.header import Header, decode_fields, row_of, to_fields
from ropeway.gateway.workers import split
from tests import answers, rules
from tests.frames import Frame
from tests.requests import heartbeat

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    from ropeway.gateway.listener import Listener

H = TypeVar("H", bound=Header)

TIMEOUT_S = 60.0
ONE_ANSWER = rules.named(
    "README.md", "A request gets exactly one answer, unless it is one-way."
)
"""Longer than anything here takes on a loaded machine."""
ROOMY = LogConfig(segment_bytes=8 << 20)
"""For tests of several large messages at a time: a read ends with its segment."""
PATIENT_MS = 60_000
"""How long a send may wait, where a test does not look for that."""
LIMIT_S = 400
"""Longer than any test takes there. What interrupts tests cannot interrupt uvloop."""


def limit_s(test: Callable[..., object]) -> float:
    """Half of the time that a test's file has for each: servers start in the rest."""
    marks = test.__globals__.get("pytestmark")
    several = marks if isinstance(marks, list) else []
    return max(
        [LIMIT_S, *(one.args[0] / 2 for one in several if one.name == "timeout")]
    )


def looped(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on the loop that serves in earnest.

    It fails too when a callback or a task raised something that nobody took.
    """

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        stray: list[dict[str, Any]] = []

        async def watched() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: stray.append(context))
            async with asyncio.timeout(limit_s(test)):
                await test(*args, **kwargs)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(watched())
        assert not stray, stray

    return run


class Remoting:
    """One connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self.writer = writer
        self._opaques = itertools.count(1)
        self._waiting: dict[int, tuple[int, asyncio.Future[Frame]]] = {}
        self.requests: asyncio.Queue[Frame] = asyncio.Queue()
        """What the node has asked us."""
        self.answers: list[Frame] = []
        """Every answer, in the order in which they came."""
        self._closed_to_answers: dict[int, str] = {}
        self._too_many: list[str] = []
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    @property
    def address(self) -> str:
        """Our own address, as the node sees it."""
        host, port = self.writer.get_extra_info("sockname")[:2]
        return f"{host}:{port}"

    async def _listen(self) -> None:
        frames = FrameReader()
        try:
            while data := await self._reader.read(1 << 16):
                for raw in frames.feed(data):
                    self._take(*raw)
        except ConnectionError:
            pass
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionResetError("the node closed"))

    def _take(self, serialize_type: int, header: bytes, body: bytes) -> None:
        envelope = decode_envelope(serialize_type, header)
        frame = Frame(
            envelope.code,
            envelope.opaque,
            envelope.flag,
            envelope.remark,
            decode_fields(envelope.ext_fields),
            body,
            PREFIX.pack(4 + len(header) + len(body), len(header)) + header + body,
        )
        if not envelope.flag & RESPONSE_FLAG:
            self.requests.put_nowait(frame)
            return
        self.answers.append(frame)
        request, future = self._waiting.pop(envelope.opaque, (None, None))
        answers.note(request or "?", frame.code, frame.remark)
        if reason := self._closed_to_answers.get(envelope.opaque):
            self._too_many.append(f"{reason}, and then {frame.code}, {frame.remark}")
        if future is not None:
            self._closed_to_answers[envelope.opaque] = (
                f"request {request} had an answer"
            )
            future.set_result(frame)

    def send(
        self,
        what: Header | int,
        body: bytes = b"",
        *,
        fields: dict[str, str] | None = None,
        one_way: bool = False,
        **more: Any,
    ) -> asyncio.Future[Frame]:
        """Send a request; the future gets its answer.

        Args:
            what: A declared header, or the code of any request.
            body: What follows the header.
            fields: For a code: its fields.
            one_way: Say that no answer is wanted.
            more: As for `encode_frame`.
        """
        if isinstance(what, Header):
            code, fields = int(row_of(type(what)).code), to_fields(what)
        else:
            code = what
        opaque = next(self._opaques)
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        if self._listening.done() and not one_way:
            # The node may have gone between its last answer and this request.
            future.set_exception(ConnectionResetError("the node closed"))
            return future
        self._waiting[opaque] = int(code), future
        flag = ONE_WAY_FLAG if one_way else 0
        if one_way:
            self._closed_to_answers[opaque] = f"request {code} was one-way"
        self.writer.write(
            encode_frame(code, opaque, flag=flag, fields=fields, body=body, **more)
        )
        return future

    async def ask(self, what: Header | int, body: bytes = b"", **more: Any) -> Frame:
        """Send a request and wait for its answer."""
        try:
            return await asyncio.wait_for(self.send(what, body, **more), TIMEOUT_S)
        except TimeoutError as error:
            name = what if isinstance(what, int) else type(what).__name__
            raise AssertionError(f"{ONE_ANSWER}; {name} got none") from error

    async def asked(self) -> Frame:
        """The next request of the node."""
        return await asyncio.wait_for(self.requests.get(), TIMEOUT_S)

    async def closed(self) -> None:
        """Wait until the node has closed the connection."""
        await asyncio.wait_for(asyncio.shield(self._listening), TIMEOUT_S)

    @property
    def is_open(self) -> bool:
        """Whether the node has not closed."""
        return not self._listening.done()

    def check(self) -> None:
        """See that no request has had more answers than it may have."""
        assert not self._too_many, f"{ONE_ANSWER}; {self._too_many}"

    async def close(self) -> None:
        """Close our side."""
        self.writer.close()
        await asyncio.gather(self._listening, return_exceptions=True)
        for _, future in self._waiting.values():
            if future.done() and not future.cancelled():
                future.exception()


@asynccontextmanager
async def connect(
    listener: Listener, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Remoting]:
    """A connection to a listener of ours."""
    name = "localhost" if tls else None
    reader, writer = await asyncio.open_connection(
        listener.host, listener.port, ssl=tls, server_hostname=name
    )
    client = Remoting(reader, writer)
    try:
        yield client
    finally:
        await client.close()
    client.check()


def config(data: Path, **changes: Any) -> Config:
    """A configuration for tests: a directory, and any free port.

    Where the machine is busy, or its disk stands still, sends wait and are not refused,
    unless a test says itself how long they may wait.
    """
    limits = changes.pop("limits", LimitsConfig())
    if limits.send_wait_ms == LimitsConfig().send_wait_ms:
        limits = structs.replace(limits, send_wait_ms=PATIENT_MS)
    settings: dict[str, Any] = {
        "limits": limits,
        "unauthenticated": UnauthenticatedConfig(timeout_ms=PATIENT_MS),
        "data": data,
        "listeners": (ListenerConfig(port=0),),
        # Segments are set aside whole, and there are many tests.
        "log": LogConfig(segment_bytes=1 << 20),
        **changes,
    }
    return Config(**settings)


@asynccontextmanager
async def running(
    given: Config | Path, **changes: Any
) -> AsyncIterator[tuple[App, Remoting]]:
    """A node in this process, and one connection to it."""
    wanted = given if isinstance(given, Config) else config(given, **changes)
    async with App(wanted) as app, connect(app.server.listeners[0]) as client:
        yield app, client


@asynccontextmanager
async def two_running(
    data: Path, **changes: Any
) -> AsyncIterator[list[tuple[App, Remoting]]]:
    """Two nodes that share routes, in this process, and a connection to each."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(running(one))
            for one in split(config(data, **changes), 2)
        ]


async def until(condition: Any) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - whatever the condition is
            await asyncio.sleep(0.002)


async def beat(client: Remoting, *args: Any, **changes: Any) -> Frame:
    """Send a heartbeat."""
    return await client.ask(
        RequestCode.HEART_BEAT,
        heartbeat(*args, **changes),
        fields={},
        language=Language.JAVA,
    )
