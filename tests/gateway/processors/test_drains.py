"""A broker of two that is emptied, and forgotten when it does not run any more."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ropeway.gateway.node import names
from ropeway.gateway.node.deletions import is_pending, without
from ropeway.gateway.node.transactions.end_records import End
from ropeway.gateway.processors.half_message import PREPARED
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.drains import (
    BrokerRemoved,
    DrainBroker,
    DrainState,
    GetDrain,
    RemoveBroker,
)
from ropeway.gateway.wire.commands.moves import MoveQueue
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from ropeway.storage.api import LogUnavailableError
from tests.gateway.processors.test_moves import QUEUES, route, two
from tests.remoting import connect, looped, until
from tests.requests import committing, sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

    from ropeway.gateway.app import App
    from ropeway.routing.api import Broker
    from tests.remoting import Remoting

DRAIN, BACK = DrainBroker(), DrainBroker(undo=True)


@asynccontextmanager
async def sharing(
    data: Path, **changes: Any
) -> AsyncIterator[tuple[App, App, Remoting]]:
    """The first broker has a topic of three queues, and may be drained."""
    async with two(data, **changes) as (one, other, client, _):
        for app in (one, other):
            app.node.drains._is_shared = True
        yield one, other, client


async def look(client: Remoting) -> DrainState:
    answer = await client.ask(GetDrain())
    assert answer.code == 0, answer.remark
    return bodies.decode(DrainState, answer.body)


async def move_all(client: Remoting) -> list[str]:
    """Make all moves that there are; the topics in their order."""
    topics = []
    while moves := (await look(client)).moves:
        for one in moves:
            wanted = MoveQueue(one.topic, one.to_broker, one.partition)
            answer = await client.ask(wanted)
            assert answer.code == 0, answer.remark
            topics.append(one.topic)
    return topics


@looped
async def test_a_broker_that_is_drained_gives_away_all_and_gets_nothing(tmp_path: Path):
    async with sharing(tmp_path) as (one, other, client):
        await client.ask(committing("orders", 0, 7))
        retry = names.retry_topic("readers")
        await one.node.topics.ensure_derived(retry, 1)
        await one.node.topics.ensure_derived(names.dlq_topic("readers"), 1)
        before = await look(client)
        assert not before.draining
        assert before.queues == {"orders": QUEUES, retry: 1, "%DLQ%readers": 1}

        assert (await client.ask(DRAIN)).code == 0
        assert one.node.drains.is_drained
        assert not other.node.drains.is_drained
        moved = await move_all(client)
        # Retries last: there are more of them for as long as there is anything else.
        assert moved == [*["orders"] * QUEUES, "%DLQ%readers", retry]
        for name in set(moved):
            assert list(one.node.routes.topics[name].route) == ["broker-1"]
            assert one.node.topics.get(name) is None
        assert await look(client) == DrainState(
            draining=True, queues={}, moves=[], stuck={}, waiting={}
        )
        await until(lambda: other.node.topics.get("orders"))
        # What was the last queue's is as it was for every other one.
        group = committing("orders", 0, 7).consumer_group
        known = other.node.offsets.queues(group, "orders")
        assert known == {QUEUES - 1: 7}
        assert not one.node.offsets.queues(group, "orders")

        # It gets nothing, neither by a send, nor by an administrator.
        for topic in ("orders", "new"):
            late = await client.ask(sending(topic), b"late")
            assert late.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert "broker broker-0 is being drained" in late.remark
        fields = {"topic": "new", "defaultTopic": "TBW102", "perm": "6"}
        fields |= {"topicFilterType": "SINGLE_TAG", "order": "false"}
        fields |= dict.fromkeys(("readQueueNums", "writeQueueNums"), "4")
        making = RequestCode.UPDATE_AND_CREATE_TOPIC
        assert "is being drained" in (await client.ask(making, fields=fields)).remark
        fields["allBrokers"] = "true"
        assert (await client.ask(making, fields=fields)).code == 0
        assert "new" not in one.node.routes.topics

        # Until it is undone.
        assert (await client.ask(BACK)).code == 0
        assert (await client.ask(sending("new"), b"here")).code == 0
        assert "broker-0" in one.node.routes.topics["new"].route
        assert route(one) == route(other)


@looped
async def test_producers_are_told_to_send_elsewhere(tmp_path: Path):
    async with sharing(tmp_path) as (_, other, client):
        assert (await client.ask(DRAIN)).code == 0
        answer = await client.ask(GetRouteInfo(topic="orders"))
        (queues,) = bodies.decode(bodies.TopicRoute, answer.body).queue_datas
        assert (queues.broker_name, queues.perm) == ("broker-0", 4)
        # It takes what comes all the same, but for what it would have to ask about.
        assert (await client.ask(sending("orders"), b"sent")).code == 0
        for pairs in ({"TRAN_MSG": "true"}, {"TRAN_MSG": "true", "DELAY": "1"}):
            half = sending(
                "orders",
                pairs={**pairs, "PGROUP": "producers"},
                sys_flag=PREPARED,
            )
            refused = await client.ask(half, b"half")
            assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert "begins no transaction" in refused.remark
        assert not len(other.node.transactions)


@looped
async def test_what_cannot_leave_refuses_the_drain_and_changes_nothing(tmp_path: Path):
    async with sharing(tmp_path) as (one, other, client):
        settings = dict(one.node.routes.settings)
        fields = {"topic": "lites", "defaultTopic": "TBW102", "perm": "6"}
        fields |= {"topicFilterType": "SINGLE_TAG", "order": "false"}
        fields |= dict.fromkeys(("readQueueNums", "writeQueueNums"), "1")
        fields["attributes"] = "+message.type=LITE"
        making = RequestCode.UPDATE_AND_CREATE_TOPIC
        assert (await client.ask(making, fields=fields)).code == 0
        refused = await client.ask(DRAIN)
        assert refused.code == ResponseCode.ILLEGAL_OPERATION
        assert "1 topics cannot leave broker broker-0: topic lites" in refused.remark
        found = await look(client)
        assert list(found.stuck) == ["lites"]
        assert not found.draining
        await one.node.topics.delete("lites")

        # Somebody has to be there for what it has.
        assert (await client.ask(DRAIN)).code == 0
        async with connect(other.server.listeners[0]) as second:
            refused = await second.ask(DRAIN)
            assert refused.code == ResponseCode.ILLEGAL_OPERATION
            assert "no other broker runs in cluster" in refused.remark
            wanted = MoveQueue(topic="orders", to_broker="broker-0")
            assert (
                "is not being drained; allowed: none"
                in (await second.ask(wanted)).remark
            )
        assert (await client.ask(BACK)).code == 0
        one.node.drains._is_shared = False
        refused = await client.ask(DRAIN)
        assert "brokers on Pulsar can be drained" in refused.remark
        assert dict(one.node.routes.settings) == settings


@looped
async def test_what_waits_comes_where_its_topic_is_then(tmp_path: Path):
    async with sharing(tmp_path) as (one, other, client):
        assert (await client.ask(DRAIN)).code == 0
        for pairs in ({"DELAY": "1"}, {"TIMER_DELAY_MS": "900"}):
            assert (
                await client.ask(sending("orders", pairs=pairs), b"waits")
            ).code == 0
        await move_all(client)
        assert one.node.topics.get("orders") is None
        waiting = (await look(client)).waiting
        assert waiting in ({"delayed": 1, "timed": 1}, {"delayed": 1}, {"timed": 1}, {})
        await until(lambda: other.node.topics.get("orders"))
        there = other.node.topics.get("orders").partitions
        await until(lambda: sum(partition.end for partition in there) == 2)
        while (await look(client)).waiting:
            pass


@looped
async def test_what_waits_stays_while_nobody_says_that_it_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with sharing(tmp_path) as (_, other, client):
        assert (await client.ask(DRAIN)).code == 0
        delayed = sending("orders", pairs={"DELAY": "1"})

        tried = []

        def fail(*tries: object) -> None:
            tried.append(tries)
            raise LogUnavailableError("not now")

        with monkeypatch.context() as broken:
            broken.setattr(other.node.moves, "store", fail)
            assert (await client.ask(delayed, b"waits")).code == 0
            await move_all(client)
            await until(lambda: len(tried) > 1)
            assert (await look(client)).waiting
        there = other.node.topics.get("orders").partitions
        await until(lambda: sum(partition.end for partition in there) == 1)


@looped
async def test_the_last_queue_stays_while_a_transaction_is_open(tmp_path: Path):
    async with sharing(tmp_path) as (one, _, client):
        half = sending(
            "orders",
            pairs={"TRAN_MSG": "true", "PGROUP": "producers"},
            sys_flag=PREPARED,
        )
        sent = await client.ask(half, b"half")
        assert sent.code == 0
        assert (await client.ask(DRAIN)).code == 0
        for _ in range(QUEUES - 1):
            (one_move,) = (await look(client)).moves
            wanted = MoveQueue(one_move.topic, one_move.to_broker)
            assert (await client.ask(wanted)).code == 0
        refused = await client.ask(wanted)
        assert refused.code == ResponseCode.ILLEGAL_OPERATION
        assert "transactions of broker broker-0 are open" in refused.remark
        assert (await look(client)).waiting == {"transactions": 1}
        transactions = one.node.transactions
        ((found,), _) = await transactions.page(0, 1, 10, lambda _: True)
        transactions.end(found, End.COMMITTED, 0, lambda _: None)
        await until(lambda: not transactions.is_busy)
        await move_all(client)
        assert list(route(one)) == ["broker-1"]


@looped
async def test_a_broker_is_removed_once_it_is_empty_and_does_not_run(tmp_path: Path):
    async with (
        sharing(tmp_path) as (one, other, client),
        connect(other.server.listeners[0]) as second,
    ):
        await client.ask(DRAIN)
        running = await second.ask(RemoveBroker("broker-0"))
        assert running.code == ResponseCode.ILLEGAL_OPERATION
        assert "broker-0 runs; stop its nodes" in running.remark
        unknown = await second.ask(RemoveBroker("broker-7"))
        assert "there is no broker broker-7" in unknown.remark
        routes = other.node.routes
        announced = await leave(one, other)
        refused = await second.ask(RemoveBroker("broker-0"))
        assert "has queues of 1 topics, like orders" in refused.remark
        assert list(route(other)) == ["broker-0"]
        await one.node.routes.put_broker(announced)
        await move_all(client)
        await leave(one, other)
        said = await second.ask(RemoveBroker("broker-0"))
        removed = bodies.decode(BrokerRemoved, said.body)
        assert (removed.deletions, removed.left) == (0, {})
        assert removed.own_topics > 1
        assert not any("broker-0" in each.route for each in routes.topics.values())


@looped
async def test_a_broker_that_never_comes_back_holds_up_no_deletion(tmp_path: Path):
    async with (
        sharing(tmp_path) as (one, other, client),
        connect(other.server.listeners[0]) as second,
    ):
        assert (await second.ask(sending("both"), b"sent")).code == 0
        await until(lambda: "both" in one.node.routes.topics)
        await one.node.topics.put(one.node.routes.topics["both"])
        routes = other.node.routes
        one.node.topics._serving = False
        await leave(one, other)
        await routes.change_topic(
            "both", lambda old: without(old, ["broker-0", "broker-1"])
        )
        await until(lambda: not is_pending(routes.deleted["both"], "broker-1"))
        assert is_pending(routes.deleted["both"], "broker-0")
        refused = await second.ask(RemoveBroker("broker-0"))
        assert "was not drained" in refused.remark
        said = await second.ask(RemoveBroker("broker-0", gone=True))
        removed = bodies.decode(BrokerRemoved, said.body)
        assert (removed.deletions, removed.own_topics) == (1, 0)
        # Its other queues are there for whoever comes after all.
        assert removed.left == {"orders": QUEUES}
        assert not is_pending(routes.deleted["both"], "broker-0")

        # Then it knows nothing more of what was deleted.
        for topic in ("both", "orders"):
            one.node.offsets.commit("readers", topic, 0, 5)
        await one.node.routes.catch_up()
        await one.node.topics.take_over()
        assert one.node.offsets.queues("readers", "both") == {}
        assert one.node.offsets.queues("readers", "orders") == {0: 5}
        assert not one.node.drains.is_drained
        del client


async def leave(one: App, other: App) -> Broker:
    """Have a broker be announced no more."""
    (announced,) = one.node.routes.brokers["broker-0"]
    await one.node.routes.remove_broker("broker-0", one.node.leadership.node)
    await until(lambda: "broker-0" not in other.node.routes.brokers)
    return announced
