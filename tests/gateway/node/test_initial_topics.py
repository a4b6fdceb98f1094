"""Topics that the configuration names are there from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.config import ConfigError, TopicsConfig
from ropeway.gateway.node import names
from ropeway.gateway.node.initial_topics import InitialTopics
from ropeway.routing.api import Topic
from tests.remoting import config, looped, running, two_running, until

if TYPE_CHECKING:
    from pathlib import Path


def named(**queues: int) -> TopicsConfig:
    return TopicsConfig(create=queues)


@looped
async def test_topics_that_are_named_are_there_from_the_start(tmp_path: Path):
    async with running(tmp_path, topics=named(orders=3, payments=8)) as (app, _):
        for name, queues in (("orders", 3), ("payments", 8)):
            topic = app.node.topics.get(name)
            assert len(topic.partitions) == topic.setup.write_queue_nums == queues


@looped
async def test_a_topic_that_exists_is_left_as_it_is(tmp_path: Path):
    async with running(tmp_path, topics=named(orders=3)):
        pass
    async with running(tmp_path, topics=named(orders=5)) as (app, _):
        assert app.node.topics.get("orders").setup.write_queue_nums == 3


@looped
async def test_a_deleted_topic_comes_back_with_the_next_start_only(tmp_path: Path):
    async with running(tmp_path, topics=named(orders=3)) as (app, _):
        await app.node.topics.delete("orders")
        for duty in app.node.leadership._duties:
            await duty.give_up()
            await duty.take_over()
        assert app.node.topics.get("orders") is None
    async with running(tmp_path, topics=named(orders=3)) as (app, _):
        assert app.node.topics.get("orders") is not None


@looped
async def test_each_broker_with_a_log_of_its_own_has_them(tmp_path: Path):
    async with two_running(tmp_path, topics=named(orders=3)) as nodes:
        for app, _ in nodes:
            assert len(app.node.topics.get("orders").partitions) == 3
        routes = nodes[0][0].node.routes
        await until(lambda: len(routes.topics["orders"].route) == 2)


@looped
async def test_a_topic_without_room_for_its_queues_does_not_stop_the_start(
    tmp_path: Path,
):
    async with two_running(tmp_path, topics=named(wide=1024, orders=1)) as nodes:
        served = [app.node.topics.get("wide") is not None for app, _ in nodes]
        assert served == [True, False]
        assert all(app.node.topics.get("orders") for app, _ in nodes)


@looped
@pytest.mark.parametrize("name", ["TBW102", "DefaultCluster", "broker-0"])
async def test_topics_of_the_system_are_refused(tmp_path: Path, name: str):
    with pytest.raises(ConfigError, match=f"topics.create has '{name}'"):
        async with running(config(tmp_path, topics=named(**{name: 1}))):
            pass


def duty(app, **queues: int) -> InitialTopics:
    node = app.node
    wanted = msgspec.structs.replace(node.config, topics=named(**queues))
    return InitialTopics(wanted, node.routes, node.topics, node.log)


@looped
async def test_on_a_log_that_brokers_share_a_topic_of_another_broker_is_enough(
    tmp_path: Path,
):
    async with two_running(tmp_path) as ((one, _), (other, _)):
        await one.node.topics.put(
            Topic(name="orders", read_queue_nums=2, write_queue_nums=2)
        )
        await until(lambda: "orders" in other.node.routes.topics)
        other.node.log.numbering = "dense"
        await duty(other, orders=3).take_over()
        assert other.node.topics.get("orders") is None
        other.node.log.numbering = "rotating"
        await duty(other, orders=3).take_over()
        assert len(other.node.topics.get("orders").partitions) == 2


@looped
async def test_a_broker_that_is_being_drained_creates_none(tmp_path: Path):
    async with running(tmp_path) as (app, _):
        await app.node.routes.put_setting(names.DRAINS, "broker-0", "draining")
        await duty(app, orders=3).take_over()
        assert "orders" not in app.node.routes.topics
