"""Timed sends are stored and answered alike, however their headers are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire import properties
from tests.remoting import looped, running
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

SYSTEM = "rmq_sys_wheel_timer"


@looped
@pytest.mark.parametrize(
    "pairs",
    [
        {"TIMER_DELAY_SEC": "3600"},
        {"TIMER_DELAY_MS": "3600000"},
        {"TIMER_DELIVER_MS": "1900000000000"},
        {"TIMER_DELAY_SEC": "3600", "TIMER_DELAY_MS": "7", "TAGS": "t"},
        {"TIMER_DELAY_SEC": "3600", "TIMER_DEQUEUE_MS": "1"},
        {"user": "TIMER_DELAY_SEC", "TIMER_DELAY_SEC": "3600", "KEYS": "a"},
    ],
)
async def test_both_headers_are_stored_and_answered_alike(
    tmp_path: Path, pairs: dict[str, str]
):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"makes the topic")
        answers = [
            await client.ask(sending("orders", pairs=pairs, v2=v2), b"x")
            for v2 in (True, False)
        ]
        short, long = [dict(answer.fields) for answer in answers]
        stored = (await client.ask(pulling(SYSTEM))).messages()
        found = [properties.parse(one.properties) for one in stored]
        # Their times, and so the handles, differ where they are counted from now.
        for one in (*found, short, long):
            for name in ("TIMER_OUT_MS", "recallHandle", "msgId", "queueOffset"):
                one.pop(name, None)
        assert found[0] == found[1]
        assert short == long
        assert stored[0].properties.startswith("TIMER_OUT_MS\x01")


@looped
async def test_a_one_way_send_waits_too(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"makes the topic")
        pairs = {"TIMER_DELAY_MS": "1"}
        client.send(sending("orders", pairs=pairs), b"x", one_way=True)
        await client.ask(sending("orders", pairs={"TIMER_DELAY_MS": "1"}), b"y")
        partition = app.node.timer.topic.partitions[0]
        assert partition.next_offset == 2
        assert len(client.answers) == 2
