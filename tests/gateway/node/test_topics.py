"""Topics as a node serves them: queues, partitions, and keeping in step with routes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from copy import copy
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.node import time_slices
from ropeway.gateway.node.topic_changes import TopicError
from ropeway.routing import embedded
from ropeway.routing.api import PERM_INHERIT, PERM_READ, PERM_WRITE, Topic
from tests.remoting import looped, running, two_running, until
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from pathlib import Path

    from ropeway.gateway.node.topics import Topics
    from ropeway.storage.api import Partition


def topic(name: str, read: int, write: int | None = None, **more) -> Topic:
    return Topic(
        name=name, read_queue_nums=read, write_queue_nums=write or read, **more
    )


@pytest.mark.rule("node.md", "Queues keep their partitions.")
@looped
async def test_queues_keep_their_partitions_when_there_are_more_or_fewer(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, _):
        topics = app.node.topics
        two = list((await topics.put(topic("t", 2))).partitions)
        four = list((await topics.put(topic("t", 2, 4))).partitions)
        assert four[:2] == two
        assert len({one.number for one in four}) == 4
        fewer = await topics.put(topic("t", 1))
        assert list(fewer.partitions) == four
        assert fewer.setup.write_queue_nums == 1
    async with running(tmp_path) as (app, _):
        kept = app.node.topics.get("t").partitions
        assert [one.number for one in kept] == [one.number for one in four]


@looped
async def test_partitions_differ_over_topics_while_there_are_enough(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        topics = app.node.topics
        for number in range(20):
            await topics.put(topic(f"t{number}", 8))
        numbers = [
            one.number
            for number in range(20)
            for one in topics.get(f"t{number}").partitions
        ]
        assert len(set(numbers)) == 160
        whole = await topics.put(topic("whole", 1024))
        assert {one.number for one in whole.partitions} == set(range(1024))
        (other,) = topics.with_partition(numbers[0], retry=True) or [None]
        assert other is None
        found = topics.with_partition(numbers[0], retry=False)
        assert {one.name for one in found} == {"t0", "whole"}


@looped
@pytest.mark.parametrize(
    "wrong",
    [topic("t", 1025), topic("t", -1), topic("t", 1, perm=8), topic("t", 1, perm=-1)],
)
async def test_what_cannot_be_is_refused_and_leaves_nothing(tmp_path: Path, wrong):
    async with running(tmp_path) as (app, _):
        with pytest.raises(TopicError, match="allowed"):
            await app.node.topics.put(wrong)
        assert app.node.topics.get("t") is None
        assert "t" not in app.node.routes.topics


@looped
async def test_a_derived_topic_grows_and_keeps_what_was_made_of_it(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        topics = app.node.topics
        await topics.put(topic("%RETRY%g", 1, perm=PERM_READ, attributes={"a": "b"}))
        grown = (await topics.ensure_derived("%RETRY%g", 3)).setup
        assert (grown.read_queue_nums, grown.write_queue_nums) == (3, 3)
        assert (grown.perm, grown.attributes) == (PERM_READ, {"a": "b"})
        assert (await topics.ensure_derived("%RETRY%g", 2)).setup == grown


@looped
async def test_those_who_watch_hear_of_deleted_topics_before_their_messages_go(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, _):
        topics = app.node.topics
        await topics.put(topic("t", 1))
        heard = []
        topics.watch_deleted(
            lambda gone: heard.append((gone.name, gone.partitions[0].end))
        )
        await topics.delete("t")
        await topics.delete("t")
        assert heard == [("t", 0)]
        assert "t" not in [one.name for one in topics]


@looped
async def test_sending_makes_a_topic_as_another_node_has_just_made_it(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(embedded, "POLL_S", 3600.0)
    async with two_running(tmp_path) as ((one, _), (other, _)):
        await one.node.topics.put(topic("t", 7, perm=PERM_WRITE))
        made = await other.node.topics.auto_create("t", "TBW102", 4)
        assert (len(made.partitions), made.setup.perm) == (7, PERM_WRITE)
        assert one.node.topics.get("t").setup.write_queue_nums == 7
        await one.node.topics.put(topic("template", 3, perm=PERM_READ | PERM_INHERIT))
        made = await other.node.topics.auto_create("u", "template", 4)
        assert (len(made.partitions), made.setup.perm) == (3, PERM_READ)


@looped
async def test_a_topic_that_this_log_cannot_keep_leaves_the_others_served(
    tmp_path: Path,
):
    """Its attributes may be from where the topic was kept before."""
    odd = topic(
        "odd", 1, attributes={"entry.format": "PULSAR"}, route={"broker-0": [9]}
    )
    async with running(tmp_path) as (app, _):
        await app.node.topics.put(topic("orders", 1))
        await app.node.routes.change_topic("odd", lambda _: odd)
    async with running(tmp_path) as (app, client):
        assert app.node.topics.get("odd") is None
        assert (await client.ask(sending("orders"), b"x")).code == 0


@looped
async def test_many_topics_are_taken_over_in_slices_and_changes_meanwhile_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """10,000 topics of 8 queues held the loop up for half a second."""
    monkeypatch.setattr(time_slices, "QUEUES_AT_ONCE", 6)
    async with running(tmp_path) as (app, _):
        topics, routes = app.node.topics, app.node.routes
        for number in range(6):
            await topics.put(topic(f"t{number}", 3))
        await topics.give_up()
        create = topics.changes.create

        def unreadable(old: Topic | None) -> Topic:
            assert old is not None
            return msgspec.structs.replace(old, perm=PERM_WRITE)

        async def create_and_change(
            setup: Topic, numbers: list[int], generation: int
        ) -> None:
            if setup.name == "t5":
                assert topics.get("t0").readable
                await routes.change_topic("t0", unreadable)
            await create(setup, numbers, generation)

        monkeypatch.setattr(topics.changes, "create", create_and_change)
        taking = asyncio.ensure_future(topics.take_over())
        seen = set()
        while not taking.done():
            await asyncio.sleep(0)
            seen.add(sum(topics.get(f"t{number}") is not None for number in range(6)))
        await taking
        assert {2, 4} <= seen
        assert not topics.get("t0").readable


@asynccontextmanager
async def two_on_one_log(data: Path) -> AsyncIterator[list[Topics]]:
    """The topics of two brokers, with partitions numbered as on a log that both share.

    Of its partitions the odd ones are beside the first broker.
    """
    async with two_running(data) as nodes:

        async def hosts(_: str, partitions: Collection[int]) -> dict[int, str]:
            return {one: ("127.0.0.1", "there")[1 - one % 2] for one in partitions}

        for app, _ in nodes:
            app.node.log.numbering = "dense"
            app.node.log.hosts = hosts
            await until(lambda node=app.node: len(node.routes.brokers) == 2)
        (away, _) = nodes[1]
        broker = away.node.routes.brokers["broker-1"][0]
        moved = msgspec.structs.replace(broker, addresses=("there:1",))
        routes = nodes[0][0].node.routes
        await away.node.routes.put_broker(moved)
        await until(lambda: routes.brokers["broker-1"] == (moved,))
        yield [app.node.topics for app, _ in nodes]


@looped
async def test_a_master_serves_as_it_did_for_reading_what_has_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Of 10,000 topics to be taken over, a quarter of the CPU is left by that."""
    async with running(tmp_path) as (app, _):
        topics = app.node.topics
        for name in ("same", "changed", "renewed"):
            await topics.put(topic(name, 4))
        await topics.give_up()
        await topics.follow()
        before = {one.name: one for one in topics}
        made: list[str] = []
        log = app.node.log
        create, find = log.create, log.partition

        async def creating(name: str, *given: object) -> None:
            made.append(name)
            await create(name, *given)

        def finding(name: str, number: int) -> Partition:
            """The log has forgotten those of one, as where Pulsar had lost it."""
            found = find(name, number)
            return copy(found) if name == "renewed" else found

        monkeypatch.setattr(log, "partition", finding)
        monkeypatch.setattr(log, "create", creating)
        changed = msgspec.structs.replace(before["changed"].setup, perm=PERM_READ)
        app.node.routes.topics["changed"] = changed
        await topics.take_over()
        assert sorted({*made} - {"TBW102"}) == ["changed", "renewed"]
        after = {one.name: one for one in topics}
        assert after.keys() == before.keys()
        assert after["same"] is before["same"]
        assert not after["changed"].writable
        assert after["renewed"].partitions != before["renewed"].partitions
        number = after["changed"].partitions[0].number
        assert after["changed"] in topics.with_partition(number, retry=False)
        assert before["changed"] not in topics.with_partition(number, retry=False)


def route_of(topics: Topics, name: str) -> dict[str, list[int]]:
    return topics._routes.topics[name].route


@looped
async def test_what_is_sent_to_first_is_made_on_all_brokers_in_one_change(
    tmp_path: Path,
):
    async with two_on_one_log(tmp_path) as (one, other):
        changes: list[str] = []
        other._routes.watch_topics(changes.append)
        made = await one.auto_create("t", "TBW102", 4)
        assert [partition.number for partition in made.partitions] == [1, 3, 5, 7]
        await until(lambda: other.get("t"))
        assert route_of(other, "t") == {
            "broker-0": [1, 3, 5, 7],
            "broker-1": [0, 2, 4, 6],
        }
        assert changes == ["t"]
        # The other one finds its part there, and adds nothing.
        made = await other.auto_create("t", "TBW102", 4)
        assert [partition.number for partition in made.partitions] == [0, 2, 4, 6]


@looped
async def test_brokers_that_make_a_topic_at_the_same_time_agree(tmp_path: Path):
    async with two_on_one_log(tmp_path) as (one, other):
        made = await asyncio.gather(
            *(each.put(topic("t", 3), everywhere=True) for each in (one, other))
        )
        assert [len(served.partitions) for served in made] == [3, 3]
        assert route_of(one, "t") == {"broker-0": [1, 3, 5], "broker-1": [0, 2, 4]}


@looped
async def test_a_topic_for_one_broker_is_made_there_alone(tmp_path: Path):
    async with two_on_one_log(tmp_path) as (one, other):
        await one.put(topic("t", 2))
        assert route_of(one, "t") == {"broker-0": [0, 1]}
        # It is there: what others do adds their own part.
        await until(lambda: "t" in other._routes.topics)
        await other.put(topic("t", 3), everywhere=True)
        assert route_of(other, "t") == {"broker-0": [0, 1], "broker-1": [2, 3, 4]}
        await one.put(topic("whole", 1024), everywhere=True)
        assert route_of(one, "whole").keys() == {"broker-0"}


@looped
async def test_topics_are_made_broker_by_broker_where_each_has_its_own_log(
    tmp_path: Path,
):
    async with two_running(tmp_path) as ((one, _), (other, _)):
        await one.node.topics.auto_create("t", "TBW102", 4)
        assert route_of(one.node.topics, "t").keys() == {"broker-0"}
        await other.node.topics.auto_create("t", "TBW102", 4)
        assert route_of(other.node.topics, "t").keys() == {"broker-0", "broker-1"}


@looped
async def test_a_broker_that_gets_a_topic_with_fewer_queues_hides_no_others(
    tmp_path: Path,
):
    async with two_running(tmp_path) as ((one, first), (other, _)):
        await one.node.topics.put(topic("t", 4))
        await until(lambda: "t" in other.node.topics._routes.topics)
        await other.node.topics.put(topic("t", 2))
        await until(lambda: "broker-1" in route_of(one.node.topics, "t"))
        assert (await first.ask(sending("t", queue_id=3), b"x")).code == 0
        assert (await first.ask(pulling("t", queue_id=3))).code == 0
        theirs = other.node.topics.get("t")
        assert theirs is not None
        assert theirs.setup.read_queue_nums == 2
