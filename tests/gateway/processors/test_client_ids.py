"""Client ids belong to the principal that registered them, whatever is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ropeway.acl.administration import Rules
from ropeway.gateway.wire import bodies, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands import lite
from ropeway.gateway.wire.commands.clients import (
    HeartBeat,
    LockBatchMq,
    UnlockBatchMq,
    UnregisterClient,
)
from ropeway.routing.api import Group, Topic
from tests.guarded import ALICE, NOBODY, acl_of, allow, ask, guarded, populate
from tests.remoting import connect, looped, running, until
from tests.requests import heartbeat, sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.app import App
    from tests.remoting import Remoting

RULES = (allow("Topic:orders", "Pub", "Sub"), allow("Group:g", "Sub"))
TAKEN = ResponseCode.NO_PERMISSION


async def beat(client: Remoting, who: str, *groups: str, **changes) -> int:
    body = heartbeat("c1", *groups, **changes)
    return (await ask(client, who, HeartBeat(), body)).code


async def let_nobody(app: App, *rules) -> None:
    await app.node.guard.administration.add_rules(Rules(f"User:{NOBODY}", rules))


@looped
async def test_nobody_registers_as_another_users_client(tmp_path: Path):
    async with (
        guarded(tmp_path, *RULES) as (app, client),
        connect(app.server.listeners[0]) as thief,
    ):
        await let_nobody(app, *RULES)
        clients = app.node.clients
        assert await beat(client, ALICE, "g", producers=("p",)) == 0
        link = clients.find_producer("c1")
        for wanted in ({"producers": ("p",)}, {"producers": ("other",)}):
            assert await beat(thief, NOBODY, **wanted) == TAKEN
        assert await beat(thief, NOBODY, "g") == TAKEN
        assert clients.find_producer("c1") is link
        assert list(clients.consumer_group("g").members) == [link]
        assert clients.producer_groups() == ["p"]


@looped
async def test_an_id_is_free_when_its_owner_has_gone(tmp_path: Path):
    acl = acl_of(tmp_path)
    async with (
        running(tmp_path, acl=acl) as (app, third),
        connect(app.server.listeners[0]) as first,
        connect(app.server.listeners[0]) as second,
    ):
        await populate(app, *RULES)
        await let_nobody(app, *RULES)
        owners = app.node.clients.owners
        # A client may have several connections, and come again on another one.
        assert await beat(first, ALICE, "g") == 0
        assert await beat(second, ALICE, "g") == 0
        first.writer.close()
        await until(lambda: len(app.node.clients.consumer_group("g").members) == 1)
        assert await beat(third, NOBODY, "g") == TAKEN
        gone = UnregisterClient(client_id="c1", consumer_group="g")
        assert (await ask(second, ALICE, gone)).code == 0
        assert len(owners) == 0
        assert await beat(third, NOBODY, "g") == 0
        assert await beat(second, ALICE, "g") == TAKEN


@looped
async def test_a_request_makes_nobody_the_one_that_gets_anothers_replies(
    tmp_path: Path,
):
    async with (
        guarded(tmp_path, *RULES) as (app, client),
        connect(app.server.listeners[0]) as thief,
    ):
        await let_nobody(app, *RULES)
        assert await beat(client, ALICE, producers=("p",)) == 0
        link = app.node.clients.find_producer("c1")
        asking = sending("orders", pairs={properties.REPLY_TO_CLIENT: "c1"})
        assert (await ask(thief, NOBODY, asking, b"?")).code == 0
        assert app.node.clients.find_producer("c1") is link
        assert (await ask(client, ALICE, asking, b"?")).code == 0
        assert app.node.clients.find_producer("c1") is link


def wanting(*queue_ids: int) -> bytes:
    queues = [bodies.MessageQueue("broker-0", one, "orders") for one in queue_ids]
    return bodies.encode(bodies.LockBatchBody("g", "c1", mq_set=queues))


@looped
async def test_nobody_takes_or_frees_queues_as_another_users_client(tmp_path: Path):
    async with guarded(tmp_path, *RULES) as (app, client):
        await let_nobody(app, *RULES)
        await app.node.groups.put(Group(name="g"))
        await app.node.topics.put(
            Topic(name="orders", read_queue_nums=4, write_queue_nums=4)
        )

        async def lock(who: str, *queue_ids: int) -> list[int]:
            answer = await ask(client, who, LockBatchMq(), wanting(*queue_ids))
            held = msgspec.json.decode(answer.body)["lockOKMQSet"]
            return sorted(one["queueId"] for one in held)

        assert await lock(ALICE, 0, 1) == [0, 1]
        assert await lock(NOBODY, 0, 1, 2) == [2]
        freed = await ask(client, NOBODY, UnlockBatchMq(), wanting(0, 1))
        assert freed.code == 0
        assert await lock(NOBODY, 0, 1) == []
        assert await lock(ALICE, 0, 1) == [0, 1]
        await ask(client, ALICE, UnlockBatchMq(), wanting(0))
        assert await lock(NOBODY, 0, 1) == [0]


@looped
async def test_nobody_changes_the_lite_topics_of_another_users_client(tmp_path: Path):
    async with guarded(tmp_path, *RULES) as (app, client):
        await let_nobody(app, *RULES)
        node = app.node
        kind = {"message.type": "LITE"}
        await node.topics.put(
            Topic(name="orders", read_queue_nums=1, write_queue_nums=1, attributes=kind)
        )
        bound = {"lite.bind.topic": "orders"}
        await node.groups.put(Group(name="g", attributes=bound))

        async def sync(who: str, action: str, *names: str) -> int:
            wanted = lite.LiteSubscription(
                action=action,
                client_id="c1",
                group="g",
                topic="orders",
                lite_topic_set=list(names),
            )
            body = bodies.encode(lite.LiteSubscriptions([wanted]))
            return (await ask(client, who, lite.LiteSubscriptionCtl(), body)).code

        assert await sync(ALICE, lite.PARTIAL_ADD, "a") == 0
        (one,) = node.lite.subscribers
        for action in (lite.PARTIAL_ADD, lite.PARTIAL_REMOVE, lite.COMPLETE_ADD):
            assert await sync(NOBODY, action, "b") == TAKEN
        assert await sync(NOBODY, lite.COMPLETE_REMOVE) == TAKEN
        pop = lite.PopLiteMessage(
            client_id="c1",
            consumer_group="g",
            topic="orders",
            max_msg_num=1,
            invisible_time=60_000,
            poll_time=0,
            born_time=0,
        )
        assert (await ask(client, NOBODY, pop)).code == TAKEN
        assert one.lites == {"a"}
        assert list(node.lite.subscribers) == [one]
        assert await sync(ALICE, lite.COMPLETE_REMOVE) == 0
        assert await sync(NOBODY, lite.PARTIAL_ADD, "b") == 0
