"""One user, or one address, cannot make any number of topics, groups or clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.config import TopicsConfig
from ropeway.gateway.node import names
from ropeway.gateway.request_limits import CreationsConfig
from ropeway.gateway.wire import bodies, properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateGroup, CreateTopic
from ropeway.gateway.wire.commands.clients import (
    HeartBeat,
    LockBatchMq,
    UnregisterClient,
)
from tests.gateway.processors.test_reply import replying
from tests.guarded import ALICE, NOBODY, ROOT, acl_of, allow, ask, populate
from tests.remoting import connect, looped, running, until
from tests.requests import heartbeat, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.wire.header import Header

BUSY = ResponseCode.SYSTEM_BUSY


def creating(name: str) -> Header:
    return CreateTopic(
        topic=name,
        default_topic="TBW102",
        read_queue_nums=1,
        write_queue_nums=1,
        perm=6,
        topic_filter_type="SINGLE_TAG",
        order=False,
    )


def group(name: str) -> bytes:
    return msgspec.json.encode({"groupName": name})


@looped
async def test_new_topics_are_bounded_however_they_are_made(tmp_path: Path):
    async with running(tmp_path, creations=CreationsConfig(topics_per_hour=4)) as (
        app,
        client,
    ):
        made = [
            sending("by-send"),
            sending(f"{names.RETRY_PREFIX}by-send"),
            creating("by-hand"),
        ]
        for header in made:
            assert (await client.ask(header, b"x")).code == 0
        # Those that are there, and those that cannot be made, cost nothing.
        for header in made:
            assert (await client.ask(header, b"x")).code == 0
        for _ in range(5):
            unmade = sending("not-made", default_topic="none")
            refused = await client.ask(unmade, b"x")
            assert refused.code == ResponseCode.TOPIC_NOT_EXIST
        assert (await client.ask(sending("last"), b"x")).code == 0
        reply = msgspec.structs.replace(replying(), topic="more")
        for header in (
            sending("more"),
            sending("more", v2=False),
            sending(f"{names.RETRY_PREFIX}more"),
            creating("more"),
            reply,
        ):
            refused = await client.ask(header, b"x")
            assert refused.code == BUSY
            assert refused.remark == (
                "127.0.0.1 has made 4 topics within an hour; allowed: 4 "
                "(creations.topics_per_hour), more by superusers alone"
            )
        assert app.node.topics.get("more") is None
        assert app.node.topics.get(f"{names.RETRY_PREFIX}more") is None
        assert (await client.ask(sending("last"), b"x")).code == 0


@looped
async def test_new_groups_are_bounded_however_they_are_made(tmp_path: Path):
    async with running(tmp_path, creations=CreationsConfig(groups_per_hour=3)) as (
        app,
        client,
    ):
        await client.ask(sending("orders"), b"x")
        beat = heartbeat("c", "by-heartbeat", topic="orders")
        assert (await client.ask(HeartBeat(), beat)).code == 0
        assert (await client.ask(pulling("orders", group="by-pull"))).code == 0
        assert (await client.ask(CreateGroup(), group("by-hand"))).code == 0
        for name in ("by-heartbeat", "by-pull", "by-hand"):
            assert app.node.groups.get(name) is not None
        refused = [
            await client.ask(
                HeartBeat(), heartbeat("c", "more", producers=("p",), topic="orders")
            ),
            await client.ask(pulling("orders", group="more")),
            await client.ask(CreateGroup(), group("more")),
        ]
        assert [one.code for one in refused] == [BUSY] * 3
        assert "has made 3 groups within an hour" in refused[0].remark
        assert app.node.groups.get("more") is None
        # What else the heartbeat says counts.
        assert app.node.clients.producer_groups() == ["p"]


@looped
async def test_so_many_are_created_at_a_time_and_others_are_told_to_try_again(
    tmp_path: Path,
):
    few = CreationsConfig(at_once=2)
    async with running(tmp_path, creations=few) as (_, client):
        await client.ask(sending("orders"), b"x")
        for header, kind, name in (
            (sending("orders"), "topics", "topic"),
            (creating("orders"), "topics", "topic"),
            (pulling("orders"), "groups", "consumer_group"),
        ):
            wanted = [
                msgspec.structs.replace(
                    header, **{name: f"{type(header).__name__}-{number}"}
                )
                for number in range(6)
            ]
            answers = await asyncio.gather(*(client.send(one, b"x") for one in wanted))
            assert [one.code == BUSY for one in answers] == [False] * 2 + [True] * 4
            assert answers[-1].remark == (
                f"2 {kind} are being created for 127.0.0.1; allowed: 2 at a time "
                "(creations.at_once); try again"
            )
            for one in wanted:
                assert (await client.ask(one, b"x")).code != BUSY


@looped
async def test_how_many_there_are_is_bounded_but_for_superusers(tmp_path: Path):
    acl = acl_of(tmp_path)
    few = CreationsConfig(topics=20, groups_per_hour=1)
    async with running(tmp_path, acl=acl, creations=few) as (app, client):
        await populate(app, allow("Topic:*"), allow("Group:*"))
        codes = [
            (await ask(client, ALICE, sending(f"t{number}"), b"x")).code
            for number in range(25)
        ]
        there = len(app.node.routes.topics)
        assert there == 20
        assert codes == sorted(codes)
        assert set(codes) == {0, BUSY}
        refused = await ask(client, ALICE, creating("more"))
        assert refused.remark == (
            "there are 20 topics; allowed: 20 (creations.topics), more by superusers "
            "alone"
        )
        assert (await ask(client, ROOT, creating("more"))).code == 0
        for name in ("g1", "g2", "g3"):
            assert (await ask(client, ROOT, CreateGroup(), group(name))).code == 0
        assert (await ask(client, ALICE, CreateGroup(), group("g4"))).code == 0
        assert (await ask(client, ALICE, CreateGroup(), group("g5"))).code == BUSY


@looped
async def test_who_may_not_make_a_thing_hears_that_and_not_how_many_there_are(
    tmp_path: Path,
):
    acl = acl_of(tmp_path)
    async with running(tmp_path, acl=acl, creations=CreationsConfig(topics=1)) as (
        app,
        client,
    ):
        await populate(app)
        refused = await ask(client, NOBODY, sending("orders"), b"x")
        assert refused.code == ResponseCode.NO_PERMISSION


@looped
async def test_registrations_of_one_address_are_bounded(tmp_path: Path):
    async with (
        running(tmp_path, creations=CreationsConfig(registrations=4)) as (app, first),
        connect(app.server.listeners[0]) as second,
    ):
        clients = app.node.clients
        await first.ask(sending("orders"), b"x")

        async def beat(client, *consumers: str, producers: tuple[str, ...] = ()):
            body = heartbeat("c", *consumers, producers=producers, topic="orders")
            return await client.ask(HeartBeat(), body)

        assert (await beat(first, "a", producers=("p", "q"))).code == 0
        assert (await beat(first, "a", producers=("p", "q"))).code == 0
        assert (await beat(second, producers=("p",))).code == 0
        for more in (("b",), ()):
            refused = await beat(second, *more, producers=("r",))
            assert refused.code == BUSY
            assert refused.remark == (
                "connections of 127.0.0.1 have registered 4 producers and consumers; "
                "allowed: 4 (creations.registrations)"
            )
        # A request that waits for its reply is stored; its sender is not known.
        asking = {properties.REPLY_TO_CLIENT: "c", properties.CORRELATION_ID: "1"}
        header = sending("orders", pairs=asking, producer_group="asks")
        assert (await second.ask(header, b"x")).code == 0
        assert sorted(clients.producer_groups()) == ["p", "q"]
        gone = UnregisterClient(client_id="c", producer_group="q")
        assert (await first.ask(gone)).code == 0
        assert (await beat(second, producers=("r",))).code == 0
        first.writer.close()
        await until(lambda: len(clients.producers("p")) == 1)
        assert (await beat(second, "a", producers=("s",))).code == 0
        assert (await beat(second, producers=("t",))).code == BUSY
        assert sorted(clients.producer_groups()) == ["p", "r", "s"]


@looped
async def test_names_of_clients_are_bounded(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        long = "x" * 256
        for body in (
            heartbeat(long, producers=("p",)),
            heartbeat(long, "g", topic="orders"),
            heartbeat("c", producers=(long,)),
        ):
            refused = await client.ask(HeartBeat(), body)
            assert refused.code == ResponseCode.INVALID_PARAMETER
            assert "of 256 characters; allowed: 255" in refused.remark
        locking = bodies.encode(bodies.LockBatchBody("g", long, mq_set=[]))
        refused = await client.ask(LockBatchMq(), locking)
        assert "client id of 256 characters" in refused.remark
        asking = {properties.REPLY_TO_CLIENT: long, properties.CORRELATION_ID: "1"}
        header = sending("orders", pairs=asking)
        assert (await client.ask(header, b"x")).code == 0
        assert app.node.clients.producer_groups() == []
        at_most = heartbeat("x" * 255, producers=("p" * 255,))
        assert (await client.ask(HeartBeat(), at_most)).code == 0


@looped
async def test_only_queues_that_are_there_are_locked_by_groups_that_are_counted(
    tmp_path: Path,
):
    async with running(tmp_path, creations=CreationsConfig(groups_per_hour=2)) as (
        app,
        client,
    ):
        await client.ask(sending("orders"), b"x")

        async def lock(group: str, *queues: tuple[str, int]):
            wanted = [bodies.MessageQueue("broker-0", at, one) for one, at in queues]
            asked = bodies.LockBatchBody(group, "c", mq_set=wanted)
            return await client.ask(LockBatchMq(), bodies.encode(asked))

        for group_name in ("g", "h"):
            answer = await lock(
                group_name,
                *(("orders", at) for at in (0, 3, 4, -1)),
                *((f"no-{number}", 0) for number in range(100)),
            )
            locked = msgspec.json.decode(answer.body)["lockOKMQSet"]
            assert sorted(one["queueId"] for one in locked) == [0, 3]
            assert app.node.groups.get(group_name) is not None
        assert (await lock("i", ("orders", 0))).code == BUSY
        assert sum(map(len, app.node.locks._groups.values())) == 4


@looped
async def test_a_group_that_cannot_be_made_locks_nothing(tmp_path: Path):
    topics = TopicsConfig(auto_create_groups=False)
    async with running(tmp_path, topics=topics) as (app, client):
        asked = bodies.LockBatchBody("g", "c", mq_set=[])
        refused = await client.ask(LockBatchMq(), bodies.encode(asked))
        assert refused.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert app.node.locks._groups == {}


@looped
async def test_a_topic_of_many_queues_counts_as_several(tmp_path: Path):
    """Before, 10,000 topics of 1,024 queues took eight GiB within two minutes."""
    few = CreationsConfig(topics_per_hour=64, groups_per_hour=64)

    def topic(name: str, queues: int) -> Header:
        return msgspec.structs.replace(
            creating(name), read_queue_nums=1, write_queue_nums=queues
        )

    def retries(name: str, queues: int) -> bytes:
        return msgspec.json.encode({"groupName": name, "retryQueueNums": queues})

    async with running(tmp_path, creations=few) as (_, client):
        assert (await client.ask(topic("t", 16))).code == 0
        refused = await client.ask(topic("u", 1024))
        assert refused.code == BUSY
        assert "this one counts as 64; allowed: 64" in refused.remark
        # Those that it has count no more, and those that it gets do.
        for queues, code in ((16, 0), (1024, 0), (1024, 0), (8, 0)):
            assert (await client.ask(topic("t", queues))).code == code
        assert (await client.ask(topic("v", 1))).code == BUSY
        for name, queues, code in (
            ("g", 1, 0),
            ("g", 1008, 0),
            ("g", 1008, 0),
            ("h", 17, BUSY),
            ("h", 16, 0),
        ):
            body = retries(name, queues)
            assert (await client.ask(CreateGroup(), body)).code == code
