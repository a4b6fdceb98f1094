"""Offsets: how far groups have come, and where queues begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.offsets import (
    GetEarliestMsgStoreTime,
    GetMaxOffset,
    GetMinOffset,
    Offset,
    QueryConsumerOffset,
    SearchOffset,
    StoreTime,
    UpdateConsumerOffset,
)
from ropeway.routing import embedded
from ropeway.routing.api import Group
from tests.remoting import looped, running, two_running
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path


def query(queue_id: int = 0, *, zero: bool = True, topic: str = "orders"):
    return QueryConsumerOffset(
        consumer_group="g",
        topic=topic,
        queue_id=queue_id,
        set_zero_if_not_found=zero,
    )


def update(offset: int, queue_id: int = 0, topic: str = "orders"):
    return UpdateConsumerOffset(
        consumer_group="g", topic=topic, queue_id=queue_id, commit_offset=offset
    )


@looped
async def test_a_committed_offset_is_found_and_kept(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        for body in (b"x", b"y"):
            await client.ask(sending("orders"), body)
        answer = await client.ask(update(2))
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        await app.node.groups.ensure("g")
        assert (await client.ask(update(2))).code == 0
        assert (await client.ask(update(1))).code == 0
        assert (await client.ask(query())).read(Offset).offset == 1
    async with running(tmp_path) as (_, client):
        assert (await client.ask(query())).read(Offset).offset == 1


@looped
async def test_a_group_that_another_node_has_just_made_can_commit(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(embedded, "POLL_S", 3600.0)
    async with two_running(tmp_path) as ((one, _), (_, client)):
        await client.ask(sending("orders"), b"x")
        await one.node.groups.put(Group(name="g"))
        assert (await client.ask(update(1))).code == 0
        assert (await client.ask(query())).read(Offset).offset == 1


@looped
async def test_a_new_group_begins_at_0_where_the_queue_still_does(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"x")
        for queue_id in (0, 1):
            answer = await client.ask(query(queue_id))
            assert answer.read(Offset).offset == 0
        for header in (query(zero=False), query(9), query(-1), query(topic="none")):
            answer = await client.ask(header)
            assert answer.code == ResponseCode.QUERY_NOT_FOUND


@looped
@pytest.mark.parametrize(
    ("header", "code"),
    [
        (update(-1), ResponseCode.INVALID_PARAMETER),
        (update(1, queue_id=4), ResponseCode.INVALID_PARAMETER),
        (update(1, queue_id=-1), ResponseCode.INVALID_PARAMETER),
        (update(1, topic="none"), ResponseCode.TOPIC_NOT_EXIST),
        (GetMaxOffset(topic="none", queue_id=0), ResponseCode.TOPIC_NOT_EXIST),
        (GetMinOffset(topic="orders", queue_id=4), ResponseCode.INVALID_PARAMETER),
        (
            SearchOffset(topic="orders", queue_id=-1, timestamp=0),
            ResponseCode.INVALID_PARAMETER,
        ),
        (
            GetEarliestMsgStoreTime(topic="none", queue_id=0),
            ResponseCode.TOPIC_NOT_EXIST,
        ),
    ],
)
async def test_queues_that_are_not_there_have_no_offsets(tmp_path: Path, header, code):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        await app.node.groups.ensure("g")
        assert (await client.ask(header)).code == code
        assert app.node.offsets.get("g", "orders", 0) is None


@looped
async def test_bounds_and_times_of_a_queue(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        for _ in range(3):
            await client.ask(sending("orders"), b"x")
        found = (await client.ask(pulling("orders"))).messages()
        at = {"topic": "orders", "queue_id": 0}
        assert (await client.ask(GetMaxOffset(**at))).read(Offset).offset == 3
        assert (await client.ask(GetMinOffset(**at))).read(Offset).offset == 0
        answer = await client.ask(GetEarliestMsgStoreTime(**at))
        assert answer.read(StoreTime).timestamp == found[0].store_ms
        empty = GetEarliestMsgStoreTime(topic="orders", queue_id=1)
        assert (await client.ask(empty)).read(StoreTime).timestamp == -1
        later = found[-1].store_ms + 1
        for time_ms, boundary, offset in (
            (0, "LOWER", 0),
            (found[0].store_ms, "lower", 0),
            (later, "LOWER", 3),
            (0, "UPPER", 0),
            (later, "upper", 2),
        ):
            header = SearchOffset(**at, timestamp=time_ms, boundary_type=boundary)
            assert (await client.ask(header)).read(Offset).offset == offset
