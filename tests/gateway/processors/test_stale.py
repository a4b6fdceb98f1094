"""Sends that are too old are refused, and not stored or sent on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.processors import stale
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.frame import FrameReader, decode_envelope, encode_frame
from ropeway.gateway.wire.header import to_fields
from tests.forwards import signed
from tests.gateway.processors.test_forwarded import to_second, two
from tests.remoting import looped, running
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.rule("node.md", "Stale sends die")
@looped
async def test_a_send_that_another_node_held_for_long_is_refused(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"made")
        here = app.server.listeners[0].advertised
        send = encode_frame(
            RequestCode.SEND_MESSAGE_V2,
            7,
            fields=to_fields(sending("orders")),
            body=b"late?",
        )
        now_ms = int(time.monotonic() * 1000)
        partition = app.node.topics.get("orders").partitions[0]

        async def tell(held_ms: int, sent_ms: int, number: int) -> int:
            request = signed(
                *(app.node, here, "127.0.0.1:1", send), session="link", number=number
            )
            request = msgspec.structs.replace(request, held_ms=held_ms, sent_ms=sent_ms)
            answer = await client.ask(request, send)
            assert answer.code == 0
            ((_, header, _),) = FrameReader().feed(answer.body)
            return decode_envelope(0, header).code

        # Of a node whose clock is a day off.
        day_ms = 86_400_000
        busy = ResponseCode.SYSTEM_BUSY
        assert await tell(0, now_ms - day_ms, 1) == 0
        assert partition.end == 2
        assert await tell(3_001, now_ms - day_ms, 2) == busy
        # It was not held, but on its way.
        assert await tell(0, now_ms - day_ms - 60_000, 3) == busy
        assert partition.end == 2
        assert await tell(-1, 0, 4) == 0
        assert partition.end == 3


@looped
async def test_a_send_that_is_held_for_long_is_not_sent_on(tmp_path, monkeypatch):
    async with two(tmp_path) as (near, far, client):
        monkeypatch.setattr(stale, "HELD_S", -1.0)
        answer = await client.ask(to_second(sending("orders")), b"hello")
        assert answer.code == ResponseCode.SYSTEM_BUSY
        assert "[STALE]the send was held for 0.0 s" in answer.remark
        assert near.node.forwarder.forwarded == 0
        # What is no send goes on.
        assert (await client.ask(to_second(pulling("orders")))).code == 0
        assert far.node.topics.get("orders").partitions[0].end == 1


@looped
async def test_sends_of_unknown_age_are_refused_and_others_wait(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"made")
        leadership = app.node.leadership
        leadership.leads, leadership.is_stale = False, True
        answer = await client.ask(sending("orders"), b"old")
        assert answer.code == ResponseCode.SYSTEM_BUSY
        assert "[STALE]the broker's node stood still" in answer.remark
        pull = client.send(pulling("orders"))
        leadership.is_stale, leadership.leads = False, True
        leadership._tell()
        assert [one.body for one in (await pull).messages()] == [b"made"]
        assert (await client.ask(sending("orders"), b"new")).code == 0
