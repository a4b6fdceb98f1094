"""A connection's life: its beginning, silence, and each way that it ends."""

from __future__ import annotations

import asyncio
import contextlib

from ropeway.gateway.http2 import connection as module
from ropeway.gateway.http2.connection import Connection
from ropeway.gateway.http2.errors import ErrorCode
from ropeway.gateway.http2.frames import GOAWAY, PING, STREAM_BITS, frame
from ropeway.gateway.http2.stream import Stream
from tests.gateway.http2.raw import LIMITS, echoing
from tests.remoting import looped, until


@looped
async def test_a_ping_is_answered_with_what_it_brings():
    async with echoing() as (_, client):
        client.send(frame(PING, 0, 0, b"12345678"))
        assert await client.until(PING) == (PING, 1, 0, b"12345678")


@looped
async def test_strangers_are_told_and_sent_away():
    async with echoing(begin=False) as (server, client):
        client.send(b"PRI * HTTP/1.1\r\n\r\n")
        assert await client.goaway_code() == ErrorCode.PROTOCOL_ERROR
        await until(lambda: server.lost)


@looped
async def test_a_connection_that_drains_takes_what_is_on_its_way():
    async with echoing() as (server, client):
        server.drain()
        server.drain()
        assert (await client.until(GOAWAY))[3][:4] == STREAM_BITS.to_bytes(4, "big")
        client.request(1, b"hello")
        assert (await client.answer(1))[0] == b"hello"
        assert server.in_flight == 0
        server.close()
        assert await client.goaway_code() == ErrorCode.NO_ERROR
        await until(lambda: server.lost)


@looped
async def test_streams_are_lost_with_their_connection():
    async with echoing() as (server, client):
        client.request(1, None, "/held")
        await until(lambda: server.begun)
        assert server.in_flight == 1
        client.writer.close()
        await until(lambda: server.lost)
        assert server.begun[0].was_lost
        assert server.closed


@looped
async def test_a_silent_client_is_asked_and_kept_while_it_answers(monkeypatch):
    monkeypatch.setattr(module, "_ANSWER_S", 30.0)
    async with echoing(LIMITS._replace(keepalive_s=0.05)) as (server, client):
        for _ in range(2):
            kind, flags, _, payload = await client.until(PING)
            client.send(frame(kind, 1, 0, payload))
            assert not flags
            await until(lambda: server.active)
            server._timer.cancel()
            server._look_again()
        assert await client.is_well()


@looped
async def test_a_client_that_does_not_answer_is_gone(monkeypatch):
    monkeypatch.setattr(module, "_ANSWER_S", 0.05)
    async with echoing(LIMITS._replace(keepalive_s=0.05)) as (server, _):
        await until(lambda: server.lost)


@looped
async def test_nothing_is_read_while_the_client_takes_nothing():
    async with echoing() as (server, client):
        server.pause_writing()
        client.request(1, b"hello")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.until(1)
        assert not server.begun
        server.resume_writing()
        assert (await client.answer(1))[0] == b"hello"


@looped
async def test_who_takes_nothing_does_not_keep_a_closed_connection(monkeypatch):
    monkeypatch.setattr(module, "_LINGER_S", 0.05)
    async with echoing() as (server, _):
        while not server.sender.congested:
            server.sender.send(frame(PING, 1, 0, bytes(8)) * 10_000)
        # More than all buffers on the way take.
        server._transport.write(bytes(64 << 20))
        server.close()
        assert not server.lost
        await until(lambda: server.lost)


@looped
async def test_an_aborted_connection_says_nothing_more():
    async with echoing() as (server, client):
        client.request(1, None, "/held")
        await until(lambda: server.begun)
        server.abort()
        server.sender.send(frame(PING, 0, 0, bytes(8)))
        await until(lambda: server.lost)
        assert server.begun[0].was_lost


@looped
async def test_who_serves_says_which_streams_there_are():
    plain = Connection(LIMITS)
    assert plain.stream is Stream
    plain.held(1)
    assert not plain.holds_back()
