"""Calls frame by frame: what is refused, what is given up, and what is counted."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.grpc import (
    messaging_service,  # noqa: F401 - registers every method, before one is replaced
    methods,
    protocol,
)
from ropeway.gateway.grpc.messages import prefixed
from ropeway.gateway.grpc.protocol import (
    Code,
    QueryRouteRequest,
    QueryRouteResponse,
    Resource,
    TelemetryCommand,
)
from ropeway.gateway.grpc.statuses import status
from ropeway.gateway.http2.errors import ErrorCode
from ropeway.gateway.http2.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    SETTINGS,
    frame,
    reset_frame,
    window_frame,
)
from ropeway.gateway.http2.headers import encode
from ropeway.gateway.http2.receiver import CONNECTION_WINDOW_BYTES
from ropeway.gateway.http2.stream import WINDOW_BYTES
from tests.gateway.grpc.thin import producer, serving
from tests.gateway.http2.raw import Raw
from tests.remoting import looped, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App

SERVICE = protocol.SERVICE.full_name
REQUEST = QueryRouteRequest(topic=Resource(name="orders")).SerializeToString()
OK, INVALID, EXPIRED, EXHAUSTED, UNKNOWN, INTERNAL = "0", "3", "4", "8", "12", "13"


class Caller(Raw):
    """Makes calls as a test wants them."""

    def call(
        self, stream_id: int, data: bytes | None, *, ends: bool = True, **changes: str
    ) -> None:
        """Make a call; `data` is all of its DATA."""
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": f"/{SERVICE}/{changes.pop('method', 'QueryRoute')}",
            "te": "trailers",
            "content-type": "application/grpc",
            "x-mq-client-id": "raw",
        }
        fields |= {name.replace("_", "-"): value for name, value in changes.items()}
        if "verb" in fields:
            fields[":method"] = fields.pop("verb")
        ended = END_STREAM if ends else 0
        block = encode(fields.items())
        flags = END_HEADERS | (ended if data is None else 0)
        self.send(frame(HEADERS, flags, stream_id, block))
        if data is not None:
            self.send(frame(DATA, ended, stream_id, data))

    async def status(self, stream_id: int = 1) -> str:
        """How a call went."""
        _, fields = await self.answer(stream_id)
        return fields["grpc-status"]


@asynccontextmanager
async def calling(
    data: Path, settings: dict[int, int] | None = None, **changes: Any
) -> AsyncIterator[tuple[App, Caller]]:
    """A node, and a client that makes no call by itself."""
    async with serving(data, **changes) as (app, _):
        host, _, port = app.server.listeners[0].advertised.rpartition(":")
        caller = Caller(*await asyncio.open_connection(host, int(port)))
        caller.begin(settings)
        await caller.until(SETTINGS)
        yield app, caller
        caller.writer.close()
        await until(lambda: not app.server.http2.open)
        assert app.server.http2.budget.used_bytes == 0


@looped
async def test_a_call_is_answered_with_trailers(tmp_path: Path):
    async with calling(tmp_path) as (_, caller):
        caller.call(1, prefixed(REQUEST))
        data, fields = await caller.answer(1)
        answer = QueryRouteResponse.FromString(data[5:])
        assert answer.status.code == Code.TOPIC_NOT_FOUND
        assert fields == {"grpc-status": OK}


@looped
async def test_a_request_may_come_in_pieces_and_compressed(tmp_path: Path):
    data = gzip.compress(REQUEST)
    data = b"\1" + len(data).to_bytes(4, "big") + data
    async with calling(tmp_path) as (_, caller):
        caller.call(1, data[:3], ends=False, grpc_encoding="gzip")
        caller.send(frame(DATA, 0, 1, data[3:20]), frame(DATA, 0, 1, data[20:]))
        caller.send(frame(DATA, END_STREAM, 1))
        assert await caller.status() == OK


@pytest.mark.parametrize(
    ("data", "changes", "expected"),
    [
        (None, {}, INTERNAL),
        (b"", {}, INTERNAL),
        (prefixed(REQUEST) * 2, {}, INTERNAL),
        (prefixed(REQUEST)[:-1], {}, INTERNAL),
        (prefixed(b"\xff"), {}, INTERNAL),
        (b"\0\xff\xff\xff\xff", {}, EXHAUSTED),
        (prefixed(REQUEST), {"method": "Nothing"}, UNKNOWN),
        (prefixed(REQUEST), {"grpc_encoding": "snappy"}, UNKNOWN),
        (prefixed(REQUEST), {"grpc_timeout": "soon"}, INTERNAL),
        (prefixed(REQUEST), {"content_type": "text/html"}, INTERNAL),
        (prefixed(REQUEST), {"verb": "PUT"}, INTERNAL),
        (prefixed(REQUEST), {"x": "x" * 16_150}, EXHAUSTED),
    ],
)
def test_what_cannot_be_worked_on_is_refused_alone(
    tmp_path: Path, data, changes, expected
):
    @looped
    async def refused():
        async with calling(tmp_path) as (_, caller):
            caller.call(1, data, **changes)
            assert await caller.status() == expected
            caller.call(3, prefixed(REQUEST))
            assert await caller.status(3) == OK

    refused()


@pytest.mark.parametrize(
    ("changes", "http"), [({"verb": "GET"}, "405"), ({"content_type": "a/b"}, "415")]
)
def test_browsers_are_told_in_their_own_words(tmp_path: Path, changes, http):
    @looped
    async def told():
        async with calling(tmp_path) as (_, caller):
            caller.call(1, None, **changes)
            _, fields = await caller.answer(1)
            assert fields[":status"] == http

    told()


class Stuck:
    """A method that waits until it is cancelled."""

    def __init__(self) -> None:
        self.begun = self.cancelled = 0

    async def __call__(self, *_: object) -> None:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1


@looped
async def test_who_waits_no_longer_is_told_and_nothing_goes_on(
    tmp_path: Path, monkeypatch
):
    stuck = Stuck()
    monkeypatch.setitem(methods.METHODS, "QueryRoute", stuck)
    async with calling(tmp_path) as (app, caller):
        caller.call(1, prefixed(REQUEST), grpc_timeout="300m")
        assert await caller.status() == EXPIRED
        (client,) = app.server.http2.open.values()
        # On a machine that stood still for so long it has not begun at all.
        await until(
            lambda: stuck.cancelled == stuck.begun and not client.receiver.working
        )


@looped
async def test_who_gives_up_or_goes_away_ends_its_calls(tmp_path: Path, monkeypatch):
    stuck = Stuck()
    monkeypatch.setitem(methods.METHODS, "QueryRoute", stuck)
    async with calling(tmp_path) as (app, caller):
        caller.call(1, prefixed(REQUEST))
        caller.call(3, prefixed(REQUEST), grpc_timeout="1H")
        await until(lambda: stuck.begun == 2)
        caller.send(reset_frame(1, ErrorCode.CANCEL))
        await until(lambda: stuck.cancelled == 1)
        (client,) = app.server.http2.open.values()
        assert client.receiver.working == 1
        caller.writer.close()
        await until(lambda: stuck.cancelled == 2)


@looped
async def test_what_is_given_up_before_it_began_is_counted_no_more(tmp_path: Path):
    async with calling(tmp_path) as (app, caller):
        for number in range(1, 41, 2):
            caller.call(number, prefixed(REQUEST), grpc_timeout="1H")
            caller.send(reset_frame(number, ErrorCode.CANCEL))
        caller.call(41, prefixed(REQUEST))
        assert await caller.status(41) == OK
        (client,) = app.server.http2.open.values()
        assert not client.receiver.working


@looped
async def test_a_deadline_ends_an_answer_that_is_not_taken(tmp_path: Path):
    async with calling(tmp_path, {4: 10}) as (app, caller):
        caller.call(1, prefixed(REQUEST), grpc_timeout="300m")
        await until(lambda: app.server.http2.budget.used_bytes)
        # The call is done, and waits for its windows as long as the client wants.
        caller.send(window_frame(1, 1000))
        assert await caller.status() == OK
        caller.call(3, None, ends=False, method="Telemetry", grpc_timeout="100m")
        settings = TelemetryCommand(settings=producer("orders")).SerializeToString()
        caller.send(frame(DATA, 0, 3, prefixed(settings)))
        assert await caller.reset_code(3) == ErrorCode.CANCEL


@looped
async def test_what_came_of_a_request_counts_until_it_is_whole(tmp_path: Path):
    async with calling(tmp_path) as (app, caller):
        budget = app.server.unauthenticated.partial
        part = b"\0" + (5000).to_bytes(4, "big") + bytes(2000)
        caller.call(1, part, ends=False)
        await until(lambda: budget.used_bytes == len(part))
        caller.call(3, part, ends=False)
        await until(lambda: budget.used_bytes == 2 * len(part))
        caller.send(reset_frame(1, ErrorCode.CANCEL))
        await until(lambda: budget.used_bytes == len(part))
        caller.send(frame(DATA, END_STREAM, 3, bytes(3000)))
        assert await caller.status(3) in {OK, INTERNAL}
        assert budget.used_bytes == 0


@looped
async def test_answers_that_are_not_taken_count_and_too_many_end_it(
    tmp_path: Path, monkeypatch
):
    async def much(*_: object) -> QueryRouteResponse:
        return QueryRouteResponse(status=status(Code.OK, "x" * 900))

    monkeypatch.setitem(methods.METHODS, "QueryRoute", much)
    limits = LimitsConfig(slow_readers_bytes=3000)
    async with calling(tmp_path, {4: 10}, limits=limits) as (app, caller):
        budget = app.server.http2.budget
        caller.call(1, prefixed(REQUEST))
        await until(lambda: budget.used_bytes > 900)
        caller.send(window_frame(1, 1000))
        assert await caller.status() == OK
        assert budget.used_bytes == 0
        for number in (3, 5, 7, 9):
            caller.call(number, prefixed(REQUEST))
        await until(lambda: not app.server.http2.open)


@looped
async def test_a_stream_takes_more_than_its_window(tmp_path: Path):
    long = TelemetryCommand()
    long.thread_stack_trace.thread_stack_trace = "x" * (3 << 20)
    said = prefixed(long.SerializeToString())
    settings = TelemetryCommand(settings=producer("orders")).SerializeToString()
    async with calling(tmp_path) as (app, caller):
        budget = app.server.http2.budget
        caller.call(1, None, ends=False, method="Telemetry")
        caller.send(frame(DATA, 0, 1, prefixed(settings)))
        await caller.until(DATA)
        for at in range(0, len(said), 1 << 14):
            caller.send(frame(DATA, 0, 1, said[at : at + (1 << 14)]))
        caller.send(frame(DATA, 0, 1, prefixed(settings) * 2))
        for _ in range(2):
            _, _, _, data = await caller.until(DATA)
            assert TelemetryCommand.FromString(data[5:]).HasField("settings")
        (client,) = app.server.http2.open.values()
        (stream,) = client.receiver.streams.values()
        assert stream.kept == client.receiver._kept == 0
        assert stream.room > WINDOW_BYTES // 2
        assert client.receiver._room > CONNECTION_WINDOW_BYTES // 2
        assert budget.used_bytes == 0


@looped
async def test_a_stream_both_ways_ends_with_what_is_wrong(tmp_path: Path):
    async with calling(tmp_path) as (_, caller):
        settings = TelemetryCommand(settings=producer("orders")).SerializeToString()
        caller.call(1, prefixed(settings), ends=False, method="Telemetry")
        assert (await caller.until(HEADERS))[2] == 1
        _, _, _, data = await caller.until(DATA)
        assert TelemetryCommand.FromString(data[5:]).HasField("settings")
        caller.send(frame(DATA, 0, 1, prefixed(b"\xff")))
        _, fields = await caller.answer(1)
        assert fields["grpc-status"] == INVALID
        assert fields["grpc-message"] == "BAD_REQUEST: no TelemetryCommand"
        caller.call(3, prefixed(settings), method="Telemetry")
        assert await caller.status(3) == OK
