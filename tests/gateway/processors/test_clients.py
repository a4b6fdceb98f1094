"""Clients' coming and going, and their sharing of queues."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.config import TopicsConfig
from ropeway.gateway.node.locks import QueueLocks
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ONE_WAY_FLAG, RequestCode, ResponseCode
from ropeway.gateway.wire.commands.clients import (
    GetConsumerListByGroup,
    UnregisterClient,
)
from ropeway.routing.api import Group
from ropeway.storage.api import LogUnavailableError
from tests.captures import load
from tests.remoting import Remoting, beat, connect, looped, running, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


async def members(client: Remoting, group: str) -> list[str]:
    answer = await client.ask(GetConsumerListByGroup(consumer_group=group))
    assert answer.code == 0
    return msgspec.json.decode(answer.body)["consumerIdList"]


async def notified(client: Remoting, group: str) -> None:
    told = await client.asked()
    assert told.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
    assert told.flag == ONE_WAY_FLAG
    assert told.fields == {"consumerGroup": group}


@looped
@pytest.mark.parametrize(
    "capture",
    [one for one in load(34) if one.response],
    ids=lambda one: one.client,
)
async def test_heartbeats_of_real_clients_register_them(tmp_path: Path, capture):
    data = bodies.decode(bodies.HeartbeatData, capture.request.raw.body)
    async with running(tmp_path) as (app, client):
        client.writer.write(capture.request.data)
        await until(lambda: client.answers)
        assert client.answers[0].code == 0
        clients = app.node.clients
        if data.without_sub:
            assert not clients.consumer_groups()
            return
        for consumer in data.consumer_data_set or ():
            group = clients.consumer_group(consumer.group_name)
            assert [one.client_id for one in group.members.values()] == [data.client_id]
            assert set(group.subscriptions) == {
                one.topic for one in consumer.subscription_data_set or ()
            }
        for producer in data.producer_data_set or ():
            assert len(clients.producers(producer.group_name)) == 1


@looped
async def test_a_heartbeat_is_answered_as_a_real_broker_does(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        answer = await beat(client, "me", "g", producers=("p",))
        assert (answer.code, answer.fields) == (
            0,
            {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true"},
        )
        assert app.node.topics.get("%RETRY%g")
        assert await members(client, "g") == ["me"]


@looped
async def test_members_hear_of_joining_leaving_and_changing(tmp_path: Path):
    async with running(tmp_path) as (app, first):
        listener = app.server.listeners[0]
        await beat(first, "one", "g")
        await notified(first, "g")
        async with connect(listener) as second:
            await beat(second, "two", "g")
            await notified(first, "g")
            await notified(second, "g")
            await beat(second, "two", "g")
            assert await members(first, "g") == ["one", "two"]
            assert first.requests.empty()
            await beat(second, "two", "g", expression="a", version=2)
            await notified(first, "g")
            await notified(second, "g")
            await second.ask(UnregisterClient(client_id="two", consumer_group="g"))
            await notified(first, "g")
            assert await members(first, "g") == ["one"]
            await beat(second, "two", "g", version=2)
            await notified(first, "g")
            second.writer.transport.abort()
            await notified(first, "g")
        assert await members(first, "g") == ["one"]


@looped
async def test_a_group_may_want_no_notifications(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        quiet = Group(name="g", notify_consumer_ids_changed_enable=False)
        await app.node.groups.put(quiet)
        await beat(client, "one", "g")
        async with connect(app.server.listeners[0]) as second:
            await beat(second, "two", "g")
        await until(lambda: len(app.server.listeners[0].connections) == 1)
        assert await members(client, "g") == ["one"]
        assert client.requests.empty()


@looped
async def test_the_last_member_takes_its_group_along(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        async with connect(app.server.listeners[0]) as other:
            await beat(other, "one", "g", producers=("p",))
        await until(lambda: app.node.clients.consumer_group("g") is None)
        answer = await client.ask(GetConsumerListByGroup(consumer_group="g"))
        assert answer.code == ResponseCode.SYSTEM_ERROR
        assert app.node.clients.producer_groups() == []


@looped
async def test_one_refused_consumer_does_not_hide_the_rest_of_a_client(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        answer = await beat(client, "me", "bad name", "good", producers=("p",))
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert await members(client, "good") == ["me"]
        assert len(app.node.clients.producers("p")) == 1


@looped
async def test_groups_are_not_made_where_that_is_switched_off(tmp_path: Path):
    topics = TopicsConfig(auto_create_groups=False)
    async with running(tmp_path, topics=topics) as (app, client):
        answer = await beat(client, "me", "g")
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert app.node.groups.get("g") is None


@looped
@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"clientID":1'])
async def test_a_body_that_is_none_is_refused(tmp_path: Path, body: bytes):
    async with running(tmp_path) as (_, client):
        for code in (RequestCode.HEART_BEAT, RequestCode.LOCK_BATCH_MQ):
            answer = await client.ask(code, body, fields={})
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert answer.remark


@looped
@pytest.mark.parametrize(
    ("expression", "kind", "code"),
    [
        ("a || b", "TAG", 0),
        ("*", None, 0),
        ("a > 1", "SQL92", 0),
        ("a >", "SQL92", ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ("a > 1", "SQL", ResponseCode.SUBSCRIPTION_PARSE_FAILED),
        ("||", "TAG", ResponseCode.SUBSCRIPTION_PARSE_FAILED),
    ],
)
async def test_a_subscription_can_be_checked_beforehand(
    tmp_path: Path, expression, kind, code
):
    wanted = bodies.SubscriptionData(
        topic="t", sub_string=expression, expression_type=kind
    )
    body = bodies.encode(
        bodies.CheckClientBody(client_id="me", group="g", subscription_data=wanted)
    )
    async with running(tmp_path) as (_, client):
        asked = RequestCode.CHECK_CLIENT_CONFIG
        assert (await client.ask(asked, body, fields={})).code == code


def wanting(client_id: str, *queue_ids: int) -> bytes:
    return bodies.encode(
        bodies.LockBatchBody(
            consumer_group="g",
            client_id=client_id,
            mq_set=[
                bodies.MessageQueue("broker-0", one, "orders") for one in queue_ids
            ],
        )
    )


@looped
async def test_a_queue_is_locked_by_one_client_at_a_time(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"x")

        async def lock(client_id: str, *queue_ids: int) -> list[int]:
            answer = await client.ask(
                RequestCode.LOCK_BATCH_MQ, wanting(client_id, *queue_ids), fields={}
            )
            held = msgspec.json.decode(answer.body)["lockOKMQSet"]
            return sorted(one["queueId"] for one in held)

        async def unlock(client_id: str, *queue_ids: int) -> None:
            answer = await client.ask(
                RequestCode.UNLOCK_BATCH_MQ, wanting(client_id, *queue_ids), fields={}
            )
            assert answer.code == 0

        assert await lock("a", 0, 1) == [0, 1]
        assert await lock("a", 0, 1) == [0, 1]
        assert await lock("b", 0, 1, 2) == [2]
        await unlock("b", 0)
        assert await lock("b", 0) == []
        await unlock("a", 0)
        assert await lock("b", 0) == [0]
        assert await lock("a", 0, 1) == [1]


@looped
@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_lock_is_told_when_whoever_takes_over_would_know_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
):
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"x")
        asked, goes_on = asyncio.Event(), asyncio.Event()
        answered = len(client.answers)

        async def kept(_) -> None:
            asked.set()
            await goes_on.wait()
            if not is_kept:
                raise LogUnavailableError("not certain")

        monkeypatch.setattr(QueueLocks, "shared", True)
        monkeypatch.setattr(QueueLocks, "kept", kept)
        body = b'{"consumerGroup":"g","clientId":"c","mqSet":' + QUEUES + b"}"
        answering = client.send(RequestCode.LOCK_BATCH_MQ, body, fields={})
        await asked.wait()
        assert len(client.answers) == answered
        goes_on.set()
        answer = await answering
        if is_kept:
            assert len(msgspec.json.decode(answer.body)["lockOKMQSet"]) == 1
        else:
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE


QUEUES = b'[{"topic":"orders","brokerName":"broker-0","queueId":0}]'
