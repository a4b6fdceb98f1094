"""Requests that name very much: others have their turns, and lists are bounded."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire import bodies, receipt
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import GetConsumeStats
from ropeway.gateway.wire.commands.clients import HeartBeat
from ropeway.gateway.wire.commands.group_admin import QueryCorrectionOffset
from ropeway.gateway.wire.commands.pop import BatchAckMessage
from tests.busy import busy
from tests.guarded import ALICE, ROOT, allow, ask, guarded
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

MOST_S = 0.06
"""CPU time between two turns of others; without pauses, these requests take more."""


def heartbeat_of_retry_topics(count: int) -> bytes:
    """Each name may be that of very many groups' retry topics."""
    names = [f"%RETRY%{number:04x}{'_' * 100}" for number in range(count)]
    wanted = [bodies.SubscriptionData(name, "*") for name in names]
    consumer = bodies.ConsumerData("g", subscription_data_set=wanted)
    return bodies.encode(bodies.HeartbeatData("me", consumer_data_set=[consumer]))


def acknowledgements(bits: bytes, count: int) -> bytes:
    one = receipt.BatchAck(
        *("g", "orders", "0", 0, 0, 0, 1, 1), base64.b64encode(bits).decode()
    )
    return bodies.encode(receipt.BatchAcks([one] * count, "broker-0"))


@looped
async def test_others_have_turns_while_it_is_judged_what_a_request_names(
    tmp_path: Path,
):
    rules = allow("Topic:*"), allow("Group:*")
    async with guarded(tmp_path, *rules) as (app, client):
        body = heartbeat_of_retry_topics(4000)
        with busy(app.node.fair_queue) as others:
            assert (await ask(client, ALICE, HeartBeat(), body)).code == 0
        assert others.longest_s < MOST_S


@looped
async def test_others_have_turns_while_very_many_messages_are_acknowledged(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        body = acknowledgements(b"\xff" * 4, 8000)
        with busy(app.node.fair_queue) as others:
            assert (await client.ask(BatchAckMessage(), body)).code == 0
        assert others.longest_s < MOST_S


@looped
async def test_a_set_of_more_than_a_pop_gives_is_refused_at_once(tmp_path: Path):
    """Before, to take 64 KiB of bits apart took ten seconds of the loop."""
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"x")
        body = acknowledgements(b"\xff" * (1 << 16), 11)
        refused = await client.ask(BatchAckMessage(), body)
        assert "524288 acknowledged messages; allowed: 32" in refused.remark


@looped
@pytest.mark.parametrize("guards", [False, True])
async def test_so_many_names_are_listed_and_no_more(tmp_path: Path, guards: bool):
    rules = allow("Topic:*"), allow("Group:*")
    async with guarded(tmp_path, *rules) as (_, client):
        who = ALICE if guards else ROOT
        await ask(client, who, sending("orders"), b"x")
        for count, code in (
            (1024, ResponseCode.SUCCESS),
            (1025, ResponseCode.INVALID_PARAMETER),
        ):
            names = [f"n{number}" for number in range(count)]
            stats = GetConsumeStats(consumer_group="g", topic_list=";".join(names))
            correction = QueryCorrectionOffset(
                topic="orders", compare_group="g", filter_groups=",".join(names)
            )
            for asked in (stats, correction):
                assert (await ask(client, who, asked)).code == code


@looped
async def test_what_is_listed_twice_is_told_once(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"x")
        once, often = [
            await client.ask(
                GetConsumeStats(consumer_group="g", topic_list="orders;" * count)
            )
            for count in (1, 1000)
        ]
        assert once.body == often.body
        assert b"orders" in once.body
