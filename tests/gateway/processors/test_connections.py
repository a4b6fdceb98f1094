"""Who is connected, as administrators see it."""

import msgspec

from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import (
    GetConsumerConnectionList,
    GetProducerConnectionList,
)
from ropeway.gateway.wire.commands.broker_admin import GetAllProducerInfo
from ropeway.gateway.wire.commands.group_admin import QuerySubscriptionByConsumer
from tests.remoting import beat, connect, looped, running


@looped
async def test_consumers_of_a_group_are_listed_with_what_they_want(tmp_path):
    async with running(tmp_path) as (app, client):
        listener = app.server.listeners[0]
        async with connect(listener) as other:
            await beat(client, "c1", "readers", expression="paid || free")
            await beat(other, "c2", "readers", expression="paid || free")
            header = GetConsumerConnectionList(consumer_group="readers")
            found = msgspec.json.decode((await client.ask(header)).body)
            addresses = {
                one["clientId"]: one["clientAddr"] for one in found["connectionSet"]
            }
            assert addresses == {"c1": client.address, "c2": other.address}
            assert {one["language"] for one in found["connectionSet"]} == {"JAVA"}
        assert found["consumeType"] == "CONSUME_PASSIVELY"
        assert found["messageModel"] == "CLUSTERING"
        assert found["consumeFromWhere"] == "CONSUME_FROM_LAST_OFFSET"
        wanted = found["subscriptionTable"]["orders"]
        assert wanted["subString"] == "paid || free"
        assert wanted["tagsSet"] == ["free", "paid"]


@looped
async def test_numbers_of_enums_are_given_back_as_names(tmp_path):
    async with running(tmp_path) as (_, client):
        await beat(client, "c1", "readers", consume_type=0, consume_from_where=4)
        header = GetConsumerConnectionList(consumer_group="readers")
        found = msgspec.json.decode((await client.ask(header)).body)
        assert found["consumeType"] == "CONSUME_ACTIVELY"
        assert found["consumeFromWhere"] == "CONSUME_FROM_FIRST_OFFSET"


@looped
async def test_a_group_without_consumers_is_not_online(tmp_path):
    async with running(tmp_path) as (_, client):
        header = GetConsumerConnectionList(consumer_group="readers")
        answer = await client.ask(header)
        assert answer.code == ResponseCode.CONSUMER_NOT_ONLINE
        assert answer.remark == "the consumer group[readers] not online"


@looped
async def test_producers_are_listed_by_group(tmp_path):
    async with running(tmp_path) as (_, client):
        await beat(client, "c1", producers=("writers",))
        header = GetProducerConnectionList(producer_group="writers")
        (found,) = msgspec.json.decode((await client.ask(header)).body)["connectionSet"]
        assert (found["clientId"], found["clientAddr"]) == ("c1", client.address)
        every = msgspec.json.decode((await client.ask(GetAllProducerInfo())).body)
        assert list(every["data"]) == ["writers"]
        assert every["data"]["writers"][0]["remoteIP"] == f"/{client.address}"
        unknown = GetProducerConnectionList(producer_group="none")
        assert (await client.ask(unknown)).code == ResponseCode.SYSTEM_ERROR


@looped
async def test_a_subscription_is_given_where_there_is_one(tmp_path):
    async with running(tmp_path) as (_, client):
        await beat(client, "c1", "readers", expression="paid")

        async def wanted(group: str, topic: str) -> bodies.SubscriptionData | None:
            header = QuerySubscriptionByConsumer(group=group, topic=topic)
            body = msgspec.json.decode((await client.ask(header)).body)
            assert (body["group"], body["topic"]) == (group, topic)
            return body.get("subscriptionData")

        assert (await wanted("readers", "orders"))["tagsSet"] == ["paid"]
        assert await wanted("readers", "other") is None
        assert await wanted("nobody", "orders") is None
