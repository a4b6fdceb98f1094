"""Pulling with SQL92: what matches comes, what does not holds nobody up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pull import PullReply
from ropeway.storage.api import MAX_LOOKS
from tests.remoting import beat, looped, running, until
from tests.requests import batch_of, pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path

SQL = {"expression_type": "SQL92"}


async def fill(client, *prices: object) -> None:
    for price in prices:
        await client.ask(sending("orders", pairs={"price": str(price)}), b"x")


async def fill_much(client, count: int) -> None:
    """Messages of the price 1."""
    pairs = {"UNIQ_KEY": "K", "price": "1"}
    for begin in range(0, count, 500):
        body = batch_of(*[b"x"] * min(500, count - begin), pairs=pairs)
        assert (await client.ask(sending("orders", batch=True), body)).code == 0


def offsets_of(frame) -> list[int]:
    return [one.queue_offset for one in frame.messages()]


@looped
async def test_a_pull_with_a_condition_gets_what_it_wants(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await fill(client, 1, 20, "x", 3, 40)
        for condition, wanted in (
            ("price > 10", [1, 4]),
            ("price = 'x' OR price = 3", [2, 3]),
            ("price = 3 OR price = 'x'", [3]),  # x is no number: nothing matches
            ("price <> 'x' AND price BETWEEN 3 AND 20", [1, 3]),
            ("price IS NOT NULL", [0, 1, 2, 3, 4]),
            ("UNIQ_KEY STARTSWITH '0' AND price IN ('1', 'x')", [0, 2]),
        ):
            asked = pulling("orders", subscription=condition, **SQL)
            assert offsets_of(await client.ask(asked)) == wanted, condition
        few = pulling("orders", subscription="price > 0", max_msg_nums=2, **SQL)
        answer = await client.ask(few)
        assert offsets_of(answer) == [0, 1]
        assert answer.read(PullReply).next_begin_offset == 2


@looped
async def test_a_malformed_condition_says_where_and_what_is_allowed(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await fill(client, 1)
        asked = pulling("orders", subscription="price >\n AND a = 1", **SQL)
        answer = await client.ask(asked)
        assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
        assert answer.remark == (
            "invalid SQL92 expression: line 2, column 2: 'AND'; allowed: a property, "
            "a number, a text in single quotes, TRUE, FALSE, NULL, '(', +, -, NOT"
        )


@looped
async def test_a_group_gets_what_its_heartbeat_wants(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await fill(client, 1, 20)
        asked = pulling("orders", sys_flag=0, sub_version=5)
        absent = ResponseCode.SUBSCRIPTION_NOT_EXIST
        assert (await client.ask(asked)).code == absent
        beaten = await beat(
            client,
            "me",
            "readers",
            expression="price > 10",
            version=4,
            expression_type="SQL92",
        )
        assert beaten.code == 0
        late = ResponseCode.SUBSCRIPTION_NOT_LATEST
        assert (await client.ask(asked)).code == late
        await beat(
            client,
            "me",
            "readers",
            expression="price > 10",
            version=5,
            expression_type="SQL92",
        )
        assert offsets_of(await client.ask(asked)) == [1]


@looped
async def test_a_heartbeat_with_a_bad_condition_costs_only_its_own_pulls(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        beaten = await beat(
            client,
            "me",
            "readers",
            "others",
            expression="price >",
            expression_type="SQL92",
            producers=("p",),
        )
        assert beaten.code == 0
        assert app.node.clients.producers("p")
        answer = await client.ask(pulling("orders", sys_flag=0, sub_version=1))
        assert answer.code == ResponseCode.FILTER_DATA_NOT_EXIST
        assert "line 1, column 8: the end" in answer.remark
        # What the pull says itself needs nothing of the group's.
        assert offsets_of(await client.ask(pulling("orders"))) == [0]


@looped
async def test_only_a_match_wakes_a_waiting_pull(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        future = client.send(waiting("orders", 1, subscription="price > 10", **SQL))
        await until(lambda: len(app.node.pull_hold) == 1)
        await fill(client, 2, "x", 3)
        assert len(app.node.pull_hold) == 1
        assert not future.done()
        await fill(client, 11)
        answer = await asyncio.wait_for(future, 120)
        assert offsets_of(answer) == [4]


@looped
async def test_a_waiting_pull_that_found_nothing_goes_on_behind_what_it_saw(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        future = client.send(waiting("orders", 1, subscription="price > 10", **SQL))
        await until(lambda: len(app.node.pull_hold) == 1)
        await fill(client, 2, 3)
        app.node.pull_hold.release(app.node.topics.get("orders").partitions[0])
        answer = await asyncio.wait_for(future, 120)
        assert answer.code == ResponseCode.PULL_NOT_FOUND
        assert answer.read(PullReply).next_begin_offset == 3


@looped
async def test_a_pull_looks_at_so_much_and_moves_on(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await fill_much(client, MAX_LOOKS + 10)
        await fill(client, 20)
        asked = waiting("orders", subscription="price > 10", **SQL)
        answer = await client.ask(asked)
        assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        assert answer.read(PullReply).next_begin_offset == MAX_LOOKS
        asked = pulling("orders", MAX_LOOKS, subscription="price > 10", **SQL)
        assert offsets_of(await client.ask(asked)) == [MAX_LOOKS + 10]


@looped
async def test_a_pull_that_is_woken_by_much_is_not_left_waiting_before_it(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        terms = 900
        looks = 3 * MAX_LOOKS // terms
        condition = " OR ".join(["price = '20'"] * terms)
        future = client.send(
            waiting("orders", 1, subscription=condition, **SQL),
        )
        await until(lambda: len(app.node.pull_hold) == 1)
        pairs = {"UNIQ_KEY": "K", "price": "1"}
        body = batch_of(*[b"x"] * (looks + 5), pairs=pairs)
        await client.ask(sending("orders", batch=True), body)
        answer = await asyncio.wait_for(future, 120)
        assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        assert answer.read(PullReply).next_begin_offset == 1 + looks
