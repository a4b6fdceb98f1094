"""One connection: answers, back-pressure both ways, and what closes it."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.listener import Listener
from ropeway.gateway.processors.registry import PROCESSORS
from ropeway.gateway.wire.codes import (
    RESPONSE_FLAG,
    RequestCode,
    ResponseCode,
)
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields
from tests.remoting import beat, connect, looped, running, until
from tests.requests import pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path


def raw(header, opaque: int, body: bytes = b"", code: int = 310) -> bytes:
    return encode_frame(code, opaque, fields=to_fields(header), body=body)


@looped
async def test_an_unknown_request_is_answered_with_not_supported(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(31_337, fields={})
        assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert "31337" in answer.remark
        declared = await client.ask(RequestCode.BROKER_HEARTBEAT, fields={})
        assert declared.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


@looped
async def test_answers_from_clients_are_passed_over(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        client.writer.write(encode_frame(0, 7, flag=RESPONSE_FLAG))
        assert (await client.ask(GetAllTopicList())).code == 0
        assert len(client.answers) == 1
        (connection,) = app.server.listeners[0].connections
        assert connection.in_flight == 0


@pytest.mark.rule(
    "README.md", "A request gets exactly one answer, unless it is one-way."
)
@looped
async def test_one_way_requests_are_never_answered(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        client.send(sending("orders"), b"x", one_way=True)
        client.send(sending("orders"), b"", one_way=True)
        client.send(sending("orders", v2=False), b"x", one_way=True)
        client.send(pulling("orders"), one_way=True)
        client.send(waiting("orders", 99), one_way=True)
        client.send(31_337, one_way=True, fields={})
        client.send(RequestCode.HEART_BEAT, b"not json", one_way=True, fields={})
        client.send(sending("new-one"), b"x", one_way=True)
        await client.ask(GetAllTopicList())
        await until(lambda: app.node.topics.get("new-one"))
        await until(lambda: app.node.topics.get("new-one").partitions[0].end == 1)
        (connection,) = app.server.listeners[0].connections
        assert connection.in_flight == 0
        assert [one.code for one in client.answers] == [0, 0]


@looped
async def test_garbage_closes_its_connection_and_no_other(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        listener = app.server.listeners[0]
        for garbage in (
            b"GET / HTTP/1.1\r\n\r\n",
            struct.pack(">II", 3, 0),
            struct.pack(">II", 0xFFFFFFFF, 4),
            struct.pack(">II", 8, 4) + b"null",
            struct.pack(">II", 8, 7 << 24 | 4) + b"{}  ",
        ):
            async with connect(listener) as other:
                other.writer.write(garbage)
                await other.closed()
                assert other.answers == []
        assert (await client.ask(GetAllTopicList())).code == 0
        await until(lambda: len(listener.connections) == 1)


@looped
async def test_a_frame_over_the_limit_closes_and_one_at_it_does_not(tmp_path: Path):
    limits = LimitsConfig(frame_bytes=2000, message_bytes=2000)
    async with running(tmp_path, limits=limits) as (_, client):
        room = 2000 - (len(raw(sending("orders"), 1)) - 4)
        answer = await client.ask(sending("orders"), b"x" * (room - 1))
        assert answer.code == 0
        client.send(sending("orders"), b"x" * (room + 100))
        await client.closed()


@looped
async def test_answers_that_are_ready_are_sent_before_a_distrusted_stream_closes(
    tmp_path: Path,
):
    async with running(tmp_path) as (_, client):
        good = encode_frame(31_337, 5)
        client.writer.write(
            good + encode_frame(31_337, 6) + b"\0\0\0\x08\0\0\0\x04null"
        )
        await client.closed()
        assert [one.opaque for one in client.answers] == [5, 6]


@looped
async def test_requests_of_one_connection_keep_their_order(tmp_path: Path):
    """Also those to a topic that the first of them makes."""
    async with running(tmp_path) as (_, client):
        futures = [client.send(sending("fresh"), b"%d" % one) for one in range(200)]
        offsets = [(await one).read(SendReply).queue_offset for one in futures]
        assert offsets == list(range(200))
        found = await client.ask(pulling("fresh", max_msg_nums=500, bulk=True))
        assert [one.body for one in found.messages()] == [
            b"%d" % one for one in range(200)
        ]


@looped
async def test_a_client_that_never_reads_is_bounded_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Not before the test has looked, however busy the machine is.
    closes = asyncio.Event()
    close_slow = Listener.close_slow
    monkeypatch.setattr(
        Listener,
        "close_slow",
        lambda one, slow_s: close_slow(one, slow_s) if closes.is_set() else None,
    )
    limits = LimitsConfig(write_buffer_bytes=1 << 20, slow_reader_ms=300)
    async with running(tmp_path, limits=limits) as (app, client):
        for _ in range(4):
            await client.ask(sending("orders"), b"x" * (1 << 20))
        await client.ask(pulling("orders"))
        listener = app.server.listeners[0]
        loop = asyncio.get_running_loop()
        with socket.create_connection((listener.host, listener.port)) as lazy:
            lazy.setblocking(False)
            asked = b"".join(raw(pulling("orders"), n, code=11) for n in range(500))
            await loop.sock_sendall(lazy, asked)
            mine = lazy.getsockname()[1]
            await until(
                lambda: any(
                    one.congested and one.address.endswith(f":{mine}")
                    for one in listener.connections
                )
            )
            slow = next(one for one in listener.connections if one.congested)
            assert slow._transport.get_write_buffer_size() < 16 << 20
            assert slow.waiting > 400
            assert (await client.ask(sending("orders"), b"y")).code == 0
            closes.set()
            await until(lambda: len(listener.connections) == 1)


@looped
async def test_a_client_that_catches_up_gets_every_answer(tmp_path: Path):
    limits = LimitsConfig(write_buffer_bytes=64 << 10)
    async with running(tmp_path, limits=limits) as (app, client):
        await client.ask(sending("orders"), b"x" * (1 << 20))
        await client.ask(pulling("orders"))
        listener = app.server.listeners[0]
        reader, writer = await asyncio.open_connection(
            listener.host, listener.port, limit=1 << 12
        )
        for opaque in range(60):
            writer.write(raw(pulling("orders"), opaque, code=11))
        await until(lambda: any(one.congested for one in listener.connections))
        for opaque in range(60):
            (size,) = struct.unpack(">I", await reader.readexactly(4))
            frame = await reader.readexactly(size)
            assert b'"opaque":%d,' % opaque in frame[:400]
            assert size > 1 << 20
        await until(lambda: not any(one.congested for one in listener.connections))
        assert not listener._slow
        writer.close()


@looped
async def test_a_request_answered_after_its_connection_died_harms_nobody(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        listener = app.server.listeners[0]
        async with connect(listener) as other:
            for _ in range(20):
                other.send(sending("orders"), b"x")
            other.send(waiting("orders", 20))
            await until(lambda: len(listener.connections) == 2)
            other.writer.transport.abort()
        await until(lambda: len(listener.connections) == 1)
        assert (await client.ask(sending("orders"), b"x")).code == 0
        assert len(app.node.pull_hold) == 0


@looped
async def test_a_connection_knows_language_version_and_address(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await beat(client, "me", "g")
        (connection,) = app.server.listeners[0].connections
        assert (connection.language, connection.version > 0) == ("JAVA", True)
        assert connection.address == client.address


@pytest.mark.rule(
    "processors.md",
    "What nobody foresaw is logged with its stack and answered with SYSTEM_ERROR.",
)
@looped
async def test_an_unforeseen_exception_is_an_answer_without_our_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_):
        raise ZeroDivisionError("at line 7 of secret.py")

    async def broken_later(*_):
        await asyncio.sleep(0)
        raise ZeroDivisionError("at line 7 of secret.py")

    async with running(tmp_path) as (app, client):
        for processor in (broken, broken_later):
            monkeypatch.setitem(
                PROCESSORS,
                int(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER),
                processor,
            )
            answer = await client.ask(GetAllTopicList())
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "secret" not in answer.remark
            assert "Zero" not in answer.remark
        (connection,) = app.server.listeners[0].connections
        assert connection.in_flight == 0


@looped
async def test_what_a_client_sent_is_cut_in_remarks(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        answer = await client.ask(pulling("\x01" * 40_000))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        assert len(answer.remark) <= 1000
