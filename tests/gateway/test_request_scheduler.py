"""Requests that wait are begun in their turns, and none is lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.wire.codes import (
    ONE_WAY_FLAG,
    RequestCode,
)
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields
from tests.gateway.test_connection import raw
from tests.remoting import beat, connect, looped, running, until
from tests.requests import heartbeat, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_what_was_asked_one_way_is_done_though_its_client_has_left(
    tmp_path: Path,
):
    """A consumer commits and leaves at once, while the node is busy."""

    def committing_to(queue_id: int, offset: int) -> UpdateConsumerOffset:
        return UpdateConsumerOffset(
            consumer_group="shop",
            topic="orders",
            queue_id=queue_id,
            commit_offset=offset,
        )

    async with running(tmp_path) as (app, client):
        await beat(client, "one", "shop")
        (own,) = connections = app.server.listeners[0].connections
        async with connect(app.server.listeners[0]) as other:
            await other.ask(sending("orders"), b"x")
            assert (await other.ask(committing_to(0, 0))).code == 0
            (left,) = connections - {own}
            left.pause_writing()
            asked = encode_frame(
                RequestCode.HEART_BEAT,
                5,
                flag=ONE_WAY_FLAG,
                body=heartbeat("two", "late"),
            )
            for queue_id in range(4):
                fields = to_fields(committing_to(queue_id, 7))
                code = RequestCode.UPDATE_CONSUMER_OFFSET
                asked += encode_frame(code, 6, flag=ONE_WAY_FLAG, fields=fields)
            fields = to_fields(committing_to(0, 8))
            asked += encode_frame(RequestCode.UPDATE_CONSUMER_OFFSET, 7, fields=fields)
            left.data_received(asked)
            assert left.waiting == 6
            left.abort()
            await until(lambda: left.closed and not left.waiting)
        offsets = [app.node.offsets.get("shop", "orders", one) for one in range(4)]
        assert offsets == [7, 7, 7, 7]
        assert app.node.clients.consumer_group("late") is None
        assert app.node.fair_queue.waiting == 0


@looped
async def test_more_requests_than_may_be_in_flight_wait_and_none_is_lost(
    tmp_path: Path,
):
    limits = LimitsConfig(requests_in_flight=8)
    async with running(tmp_path, limits=limits) as (app, client):
        await client.ask(sending("orders"), b"first")
        (connection,) = app.server.listeners[0].connections
        most = 0
        append = type(app.node.topics.get("orders").partitions[0]).append

        def counted(*args):
            nonlocal most
            most = max(most, connection.in_flight)
            return append(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                type(app.node.topics.get("orders").partitions[0]), "append", counted
            )
            futures = [
                client.send(sending("orders"), b"%d" % one) for one in range(1000)
            ]
            answers = await asyncio.wait_for(asyncio.gather(*futures), 60)
        assert [one.read(SendReply).queue_offset for one in answers] == list(
            range(1, 1001)
        )
        assert 2 <= most <= 8
        assert connection.in_flight == 0


@looped
async def test_waiting_pulls_of_a_new_group_do_not_stop_reading(tmp_path: Path):
    """They pass through a coroutine first, and then no longer count as in flight."""
    limits = LimitsConfig(requests_in_flight=4)
    async with running(tmp_path, limits=limits) as (app, client):
        await client.ask(sending("orders"), b"x")
        for _ in range(40):
            client.send(waiting("orders", 1, group="new"))
        await until(lambda: len(app.node.pull_hold) == 40)
        assert (await client.ask(GetAllTopicList())).code == 0


@looped
async def test_a_client_that_takes_nothing_has_one_request_begun_and_no_more(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        await client.ask(GetAllTopicList())
        (connection,) = app.server.listeners[0].connections
        connection._flow_control.congested = True
        connection.data_received(raw(GetAllTopicList(), 7, code=206) * 3)
        assert connection.waiting == 2
        connection._flow_control.congested = False
        connection.pause_or_resume()
        await until(lambda: not connection.waiting)
