"""What comes: each rule that a client may break, and what it is told then."""

from __future__ import annotations

import pytest

from ropeway.gateway.http2 import floods
from ropeway.gateway.http2.errors import ErrorCode
from ropeway.gateway.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    reset_frame,
    settings_frame,
    window_frame,
)
from ropeway.gateway.http2.headers import encode
from ropeway.gateway.http2.receiver import CONNECTION_WINDOW_BYTES
from ropeway.gateway.http2.stream import WINDOW_BYTES
from tests.gateway.http2.raw import REQUEST, echoing
from tests.remoting import looped, until

BLOCK = encode(REQUEST)
OPEN = frame(HEADERS, END_HEADERS, 1, BLOCK)
WHOLE = frame(HEADERS, END_HEADERS | END_STREAM, 1, BLOCK)
WORD = b"\0\0\0\1"
PROTOCOL, FLOW = ErrorCode.PROTOCOL_ERROR, ErrorCode.FLOW_CONTROL_ERROR
SIZE, CLOSED = ErrorCode.FRAME_SIZE_ERROR, ErrorCode.STREAM_CLOSED
CALM = ErrorCode.ENHANCE_YOUR_CALM
NINES, NOUGHTS = "9" * 5000, "0" * 5000


@pytest.fixture(autouse=True)
def _nothing_is_forgiven_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long for the frames of a flood: see `test_floods`."""
    monkeypatch.setattr(floods, "_PER_S", 0.0)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(DATA, 0, 0, b"x"), PROTOCOL),
        (frame(DATA, 0, 1, b"x"), PROTOCOL),
        (OPEN + frame(DATA, PADDED, 1, b"\5ab"), PROTOCOL),
        (frame(HEADERS, END_HEADERS, 0, BLOCK), PROTOCOL),
        (frame(HEADERS, END_HEADERS, 2, BLOCK), PROTOCOL),
        (frame(HEADERS, END_HEADERS, 1, b"\x80"), ErrorCode.COMPRESSION_ERROR),
        (frame(HEADERS, 0, 1, BLOCK) + frame(PING, 0, 0, bytes(8)), PROTOCOL),
        (frame(HEADERS, 0, 1, BLOCK) + frame(CONTINUATION, 4, 3, b""), PROTOCOL),
        (frame(CONTINUATION, END_HEADERS, 1, BLOCK), PROTOCOL),
        (frame(HEADERS, 0, 1, BLOCK) + frame(CONTINUATION, 0, 1) * 70, CALM),
        (OPEN + reset_frame(1, 8) + OPEN, CLOSED),
        (frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL),
        (frame(PRIORITY, 0, 1, bytes(5)) * 1001, CALM),
        (reset_frame(0, 8), PROTOCOL),
        (reset_frame(1, 8), PROTOCOL),
        (OPEN + frame(RST_STREAM, 0, 1, b"abc"), SIZE),
        (frame(SETTINGS, ACK, 0, bytes(6)), SIZE),
        (frame(SETTINGS, 0, 1), PROTOCOL),
        (settings_frame({}) * 1001, CALM),
        (frame(PING, 0, 0, bytes(7)), SIZE),
        (frame(PING, 0, 1, bytes(8)), PROTOCOL),
        (frame(PING, 0, 0, bytes(8)) * 1001, CALM),
        (frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
        (frame(PUSH_PROMISE, END_HEADERS, 1, BLOCK), PROTOCOL),
        (window_frame(0, 0), PROTOCOL),
        (window_frame(0, (1 << 31) - 1), FLOW),
        (window_frame(1, 1), PROTOCOL),
        (frame(WINDOW_UPDATE, 0, 0, b"abc"), SIZE),
        (OPEN + frame(DATA, 0, 1) * 1001, CALM),
        (frame(99, 0, 0) * 1001, CALM),
    ],
)
def test_what_breaks_a_rule_of_connections_ends_it(sent, code):
    @looped
    async def said():
        async with echoing() as (server, client):
            client.send(sent)
            assert await client.goaway_code() == code
            await until(lambda: server.lost)
            assert not server.receiver.streams
            assert server.held_bytes == 0

    said()


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (OPEN + window_frame(1, 0), PROTOCOL),
        (OPEN + window_frame(1, (1 << 31) - 1), FLOW),
        (OPEN + OPEN, PROTOCOL),
        (OPEN + frame(HEADERS, 5, 1, encode([(":path", "/")])), PROTOCOL),
        (frame(HEADERS, 5, 1, encode([(":path", "/")])), PROTOCOL),
        (frame(HEADERS, 0x25, 1, WORD + b"\0" + BLOCK), PROTOCOL),
        (OPEN + frame(PRIORITY, 0, 1, WORD + b"\0"), PROTOCOL),
        (OPEN + frame(PRIORITY, 0, 1, b"abc"), SIZE),
        (OPEN + reset_frame(1, 8) + frame(DATA, 0, 1, b"x"), CLOSED),
        (
            frame(HEADERS, 4, 1, BLOCK + encode([("content-length", "3")]))
            + frame(DATA, END_STREAM, 1, b"ab"),
            PROTOCOL,
        ),
        (
            frame(HEADERS, 4, 1, BLOCK + encode([("content-length", "1")]))
            + frame(DATA, 0, 1, b"ab"),
            PROTOCOL,
        ),
        (frame(HEADERS, 5, 1, BLOCK + encode([("content-length", "3")])), PROTOCOL),
        (frame(HEADERS, 5, 1, BLOCK + encode([("content-length", "x")])), PROTOCOL),
        # Python reads no number of so many digits, and digits of other scripts.
        (frame(HEADERS, 4, 1, BLOCK + encode([("content-length", NINES)])), PROTOCOL),
        (frame(HEADERS, 5, 1, BLOCK + encode([("content-length", NOUGHTS)])), PROTOCOL),
    ],
)
def test_what_breaks_a_rule_of_streams_ends_the_stream_alone(sent, code):
    @looped
    async def said():
        async with echoing() as (_, client):
            client.send(sent)
            assert await client.reset_code(1) == code
            client.request(3, b"hello")
            assert (await client.answer(3))[0] == b"hello"

    said()


@looped
async def test_requests_are_answered_in_pieces_padded_and_with_trailers():
    async with echoing() as (_, client):
        client.send(
            frame(HEADERS, 0, 1, BLOCK[:5]),
            frame(CONTINUATION, END_HEADERS, 1, BLOCK[5:]),
            frame(DATA, PADDED, 1, b"\3hel\0\0\0"),
            frame(PRIORITY, 0, 1, bytes(5)),
            frame(77, 0, 1, b"nobody knows"),
            frame(DATA, 0, 1, b"lo"),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, encode([("a", "b")])),
        )
        assert await client.answer(1) == (b"hello", {"done": "yes"})


@looped
async def test_more_streams_than_allowed_are_refused_and_may_come_again():
    async with echoing() as (server, client):
        for number in range(1, 23, 2):
            client.request(number, None, "/held")
        assert await client.reset_code(21) == ErrorCode.REFUSED_STREAM
        client.send(reset_frame(1, ErrorCode.CANCEL))
        client.request(23, b"hello")
        assert (await client.answer(23))[0] == b"hello"
        assert server.begun[0].was_lost
        assert len(server.receiver.streams) == 9


@looped
async def test_what_is_still_worked_on_counts_though_it_was_given_up():
    async with echoing() as (server, client):
        server.receiver.working = 10
        client.request(1, b"hello")
        assert await client.reset_code(1) == ErrorCode.REFUSED_STREAM


@looped
async def test_windows_are_widened_as_what_came_is_consumed():
    async with echoing() as (server, client):
        client.send(OPEN)
        came = 0
        while came < 3 * WINDOW_BYTES:
            client.send(frame(DATA, 0, 1, bytes(1 << 14)) * 32)
            came += 1 << 19
            _, _, number, payload = await client.until(WINDOW_UPDATE)
            while number == 0:
                _, _, number, payload = await client.until(WINDOW_UPDATE)
            assert int.from_bytes(payload, "big") == WINDOW_BYTES // 2
        assert server.receiver._room > CONNECTION_WINDOW_BYTES // 2


@looped
async def test_who_sends_more_than_a_window_is_told():
    async with echoing() as (server, client):
        client.send(OPEN)
        await until(lambda: server.begun)
        server.begun[0].room = 10
        client.send(frame(DATA, 0, 1, bytes(11)))
        assert await client.reset_code(1) == FLOW
        server.receiver._room = 10
        client.send(frame(DATA, 0, 1, bytes(11)))
        assert await client.goaway_code() == FLOW


@looped
async def test_an_answer_before_the_end_of_its_request_ends_both():
    block = encode([*REQUEST[:2], (":path", "/x")])
    async with echoing() as (server, client):
        client.send(frame(HEADERS, END_HEADERS, 1, block))
        await until(lambda: server.begun)
        server.sender.whole(server.begun[0], b"\x88", b"no", encode([("a", "b")]))
        assert await client.reset_code(1) == ErrorCode.NO_ERROR
        # What was on its way is taken, and nobody minds.
        client.send(frame(DATA, END_STREAM, 1, b"late"))
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, encode([("a", "b")])))
        assert await client.is_well()


@looped
async def test_before_settings_nothing_else_is_taken():
    async with echoing(begin=False) as (_, client):
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(PING, 0, 0, bytes(8)))
        assert await client.goaway_code() == PROTOCOL
