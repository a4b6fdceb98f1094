"""A broker that nobody is to send to, as routes show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.node import names
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.commands.admin import CreateTopic
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from ropeway.gateway.wire.commands.namesrv_admin import (
    AddWritePerm,
    AddWritePermReply,
    WipeWritePerm,
    WipeWritePermReply,
)
from tests.remoting import Remoting, looped, running, two_running, until
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path


async def perms(client: Remoting, topic: str) -> dict[str, int]:
    """What a topic's route shows, by broker."""
    answer = await client.ask(GetRouteInfo(topic=topic))
    route = bodies.decode(bodies.TopicRoute, answer.body)
    return {one.broker_name: one.perm for one in route.queue_datas}


def creating(topic: str, perm: int) -> CreateTopic:
    return CreateTopic(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=4,
        write_queue_nums=4,
        perm=perm,
        topic_filter_type="SINGLE_TAG",
        order=False,
    )


@looped
async def test_a_broker_is_wiped_of_its_write_permission_and_gets_it_back(tmp_path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"one")
        await client.ask(creating("shown", 4))
        wiped = await client.ask(WipeWritePerm(broker_name="broker-0"))
        count = wiped.read(WipeWritePermReply).wipe_topic_count
        assert count == len(app.node.routes.topics)
        assert await perms(client, "orders") == {"broker-0": 4}
        # Producers that ask for the template see that too.
        assert await perms(client, "TBW102") == {"broker-0": 5}
        # Also what comes later; and who has an old route is served.
        await client.ask(sending("later"), b"one")
        assert await perms(client, "later") == {"broker-0": 4}
        assert (await client.ask(sending("orders"), b"two")).code == 0
    async with running(tmp_path) as (_, client):
        assert await perms(client, "orders") == {"broker-0": 4}
        added = await client.ask(AddWritePerm(broker_name="broker-0"))
        assert added.read(AddWritePermReply).add_topic_count == count + 1
        assert await perms(client, "orders") == {"broker-0": 6}
        assert await perms(client, "shown") == {"broker-0": 4}


@looped
async def test_one_of_several_brokers_is_wiped_and_all_name_servers_know(tmp_path):
    async with two_running(tmp_path) as ((near, first), (far, second)):
        for one in (near, far):
            await until(lambda one=one: len(one.node.routes.brokers) == 2)
        for client in (first, second):
            await client.ask(creating("orders", 6))
        await first.ask(WipeWritePerm(broker_name="broker-1"))
        for client in (first, second):
            assert await perms(client, "orders") == {"broker-0": 6, "broker-1": 4}


@looped
async def test_a_broker_that_is_not_there_has_no_topics(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        wiped = await client.ask(WipeWritePerm(broker_name="none"))
        assert wiped.read(WipeWritePermReply).wipe_topic_count == 0
        added = await client.ask(AddWritePerm(broker_name="none"))
        assert added.read(AddWritePermReply).add_topic_count == 0
        settings = app.node.routes.settings
        assert not [one for one in settings if one[0] == names.WRITE_PERMISSION]
