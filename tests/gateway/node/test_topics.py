"""Topics as a node serves them: queues, partitions, and keeping in step with routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.node.topics import TopicError
from routing import embedded
from routing.api import PERM_INHERIT, PERM_READ, PERM_WRITE, Topic
from tests.remoting import looped, running, sending, two_running

if TYPE_CHECKING:
    from pathlib import Path


def topic(name: str, read: int, write: int | None = None, **more) -> Topic:
    return Topic(
        name=name, read_queue_nums=read, write_queue_nums=write or read, **more
    )


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
