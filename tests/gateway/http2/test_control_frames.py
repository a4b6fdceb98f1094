"""Frames that ask for nothing: what they change, and how many of them may come."""

from __future__ import annotations

import pytest

from ropeway.gateway.http2 import floods
from ropeway.gateway.http2.errors import ErrorCode
from ropeway.gateway.http2.frames import (
    END_HEADERS,
    END_STREAM,
    HEADERS,
    frame,
    reset_frame,
    settings_frame,
    window_frame,
)
from ropeway.gateway.http2.headers import encode
from tests.gateway.http2.raw import LIMITS, REQUEST, echoing
from tests.remoting import looped, until

BLOCK = encode(REQUEST)
OPEN = frame(HEADERS, END_HEADERS, 1, BLOCK)
WHOLE = frame(HEADERS, END_HEADERS | END_STREAM, 1, BLOCK)
CALM = ErrorCode.ENHANCE_YOUR_CALM


@pytest.fixture(autouse=True)
def _nothing_is_forgiven_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long for the frames of a flood: see `test_floods`."""
    monkeypatch.setattr(floods, "_PER_S", 0.0)


@looped
async def test_who_gives_up_one_stream_after_the_other_is_sent_away():
    async with echoing() as (_, client):
        for number in range(1, 2003, 2):
            client.request(number, None, "/held")
            client.send(reset_frame(number, ErrorCode.CANCEL))
        assert await client.goaway_code() == CALM


@looped
@pytest.mark.parametrize("stream_id", [0, 1])
async def test_who_widens_windows_a_byte_at_a_time_is_sent_away(stream_id: int):
    async with echoing() as (_, client):
        client.request(1, None, "/held")
        client.send(window_frame(stream_id, 1) * 999)
        client.send(window_frame(stream_id, 1))
        assert await client.goaway_code() == CALM


@looped
async def test_who_widens_windows_of_streams_that_have_ended_is_sent_away():
    async with echoing() as (_, client):
        client.request(1, b"hello")
        await client.answer(1)
        client.send(window_frame(1, 1 << 20) * 1000)
        assert await client.goaway_code() == CALM


@looped
async def test_windows_may_be_widened_by_what_was_sent_for_ever():
    async with echoing() as (server, client):
        client.send(OPEN)
        await until(lambda: server.begun)
        server.begun[0].window = -(1 << 30)
        client.send(window_frame(1, 1024) * 3000)
        client.request(3, b"hello")
        assert (await client.answer(3))[0] == b"hello"


@looped
async def test_settings_cost_more_where_more_streams_are_changed():
    limits = LIMITS._replace(streams=1000)
    async with echoing(limits) as (_, client):
        for number in range(1, 1921, 2):
            client.request(number, None, "/held")
        # 960 streams: each counts as sixteen.
        client.send(settings_frame({4: 1 << 16}) * 70)
        assert await client.goaway_code() == CALM
