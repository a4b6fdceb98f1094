"""In a migration clients are told where the source has what has not moved."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway.config import ListenerConfig
from ropeway.gateway.topics_config import MigrationConfig, TopicsConfig
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.admin import CreateTopic, GetTopicConfig
from ropeway.gateway.wire.commands.namesrv import GetRouteInfo
from tests.remoting import beat, looped, running
from tests.requests import sending
from tests.system.process import free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ropeway.gateway.app import App
    from tests.frames import Frame
    from tests.remoting import Remoting

HERE, THERE = {"broker-0": 1}, {"source-0": 1}


@asynccontextmanager
async def source_of(
    tmp_path: Path, **changes: object
) -> AsyncIterator[tuple[App, Remoting]]:
    changes |= {"broker": "source-0", "cluster": "Source"}
    async with running(tmp_path / "source", **changes) as one:
        yield one


def following(app: App | str) -> dict[str, MigrationConfig]:
    at = app if isinstance(app, str) else app.server.listeners[0].advertised
    return {"migration": MigrationConfig(name_server=at)}


def creating(topic: str, perm: int = 6, begins: str | None = None) -> CreateTopic:
    return CreateTopic(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=1,
        write_queue_nums=1,
        perm=perm,
        begins=begins,
    )


async def create(client: Remoting, topic: str, **more: object) -> None:
    answer = await client.ask(creating(topic, **more))
    assert answer.code == 0, answer.remark


async def ask(client: Remoting, topic: str, *, own: bool | None = None) -> Frame:
    return await client.ask(
        GetRouteInfo(topic=topic, accept_standard_json_only=True, own_only=own)
    )


async def route(client: Remoting, topic: str) -> dict[str, int]:
    """The queues that clients are told of, by broker."""
    answer = await ask(client, topic)
    assert answer.code == 0, answer.remark
    found = bodies.decode(bodies.TopicRoute, answer.body)
    told = {one.broker_name for one in found.broker_datas}
    assert told == {one.broker_name for one in found.queue_datas}
    return {one.broker_name: one.read_queue_nums for one in found.queue_datas}


async def until_route(client: Remoting, topic: str, wanted: dict[str, int]) -> None:
    """Wait until clients are told that: answers of the source are kept for a while."""
    async with asyncio.timeout(60):
        while (await ask(client, topic)).code:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert await route(client, topic) == wanted


@looped
async def test_the_sources_answer_is_handed_out_as_it_came(tmp_path):
    async with (
        source_of(tmp_path) as (source, there),
        running(tmp_path / "here", **following(source)) as (_, here),
    ):
        await create(there, "orders")
        answer = await ask(here, "orders")
        assert (answer.code, answer.body) == (0, (await ask(there, "orders")).body)
        own = await ask(here, "orders", own=True)
        assert own.code == ResponseCode.TOPIC_NOT_EXIST


@looped
async def test_clients_are_led_to_the_source_until_a_mirror_takes_their_messages(
    tmp_path,
):
    async with (
        source_of(tmp_path) as (source, there),
        running(tmp_path / "here", **following(source)) as (_, here),
    ):
        await create(there, "orders")
        await create(here, "orders", perm=4, begins="7")
        assert await route(here, "orders") == THERE
        config = (await here.ask(GetTopicConfig(topic="orders"))).body
        assert msgspec.json.decode(config)["mirrored"] is True
        # As an update of attributes does it.
        await create(here, "orders", perm=4)
        assert await route(here, "orders") == THERE
        own = bodies.decode(
            bodies.TopicRoute, (await ask(here, "orders", own=True)).body
        )
        assert [one.broker_name for one in own.queue_datas] == list(HERE)
        await create(here, "orders")
        assert await route(here, "orders") == HERE
        config = (await here.ask(GetTopicConfig(topic="orders"))).body
        assert "mirrored" not in msgspec.json.decode(config)
        # It has moved for good: that nobody may write to it is no sign of a mirror.
        await create(here, "orders", perm=4)
        assert await route(here, "orders") == HERE


@looped
async def test_a_mirror_outlives_a_restart(tmp_path):
    async with source_of(tmp_path) as (source, there):
        await create(there, "orders")
        for is_new in (True, False):
            node = running(tmp_path / "here", **following(source))
            async with node as (_, here):
                if is_new:
                    await create(here, "orders", perm=4, begins="7")
                assert await route(here, "orders") == THERE


@looped
async def test_topics_that_are_here_and_no_mirrors_are_served_here(tmp_path):
    async with (
        source_of(tmp_path) as (source, there),
        running(tmp_path / "here", **following(source)) as (_, here),
    ):
        await create(there, "orders")
        await create(here, "orders")
        assert await route(here, "orders") == HERE


@looped
async def test_only_the_source_makes_topics_that_are_sent_to(tmp_path):
    async with (
        source_of(tmp_path) as (source, _),
        running(tmp_path / "here", **following(source)) as (app, here),
    ):
        answer = await ask(here, "new")
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        assert await route(here, "TBW102") == {"source-0": 8}
        answer = await here.ask(sending("new"), b"one")
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        assert "new" not in app.node.routes.topics


@looped
async def test_retries_of_a_group_are_read_wherever_it_consumes(tmp_path):
    async with (
        source_of(tmp_path) as (source, _),
        running(tmp_path / "here", **following(source)) as (_, here),
    ):
        assert await route(here, "%RETRY%readers") == THERE
        await beat(here, "me", "readers")
        assert await route(here, "%RETRY%readers") == HERE | THERE


@looped
async def test_a_group_that_is_at_neither_has_its_retries_here(tmp_path):
    topics = TopicsConfig(auto_create_groups=False)
    folder = tmp_path / "source"
    async with (
        running(folder, broker="source-0", topics=topics) as (source, _),
        running(tmp_path / "here", **following(source)) as (_, here),
    ):
        assert await route(here, "%RETRY%readers") == HERE


@looped
async def test_replies_reach_clients_of_either_where_clusters_have_one_name(tmp_path):
    folder = tmp_path / "source"
    async with (
        running(folder, broker="source-0") as (source, _),
        running(tmp_path / "here", **following(source)) as (_, here),
    ):
        assert await route(here, "DefaultCluster_REPLY_TOPIC") == HERE | THERE


@looped
async def test_a_source_that_does_not_answer_has_nobody_make_its_topics(tmp_path):
    closed, port = free_ports(2)
    # It takes connections, and never answers.
    with socket.create_server(("127.0.0.1", port)):
        for at in (f"127.0.0.1:{closed}", f"127.0.0.1:{closed};127.0.0.1:{port}"):
            folder = tmp_path / at.replace(":", "-").replace(";", "-")
            async with running(folder, **following(at)) as (_, here):
                await create(here, "moved")
                await create(here, "orders", perm=4, begins="7")
                for topic in ("other", "orders", "TBW102", "%RETRY%readers"):
                    answer = await ask(here, topic)
                    assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
                    said = f"source {at} does not say where topic {topic}"
                    assert said in answer.remark
                assert await route(here, "moved") == HERE


@looped
async def test_a_source_that_comes_back_is_asked_again(tmp_path):
    (port,) = free_ports(1)
    place = {"listeners": (ListenerConfig(host="127.0.0.1", port=port),)}
    async with source_of(tmp_path, **place) as (source, there):
        await create(there, "orders")
        at = source.server.listeners[0].advertised
    async with running(tmp_path / "here", **following(at)) as (_, here):
        assert (await ask(here, "orders")).code == ResponseCode.SERVICE_NOT_AVAILABLE
        async with source_of(tmp_path, **place):
            await until_route(here, "orders", THERE)


@looped
async def test_brokers_of_one_name_at_both_are_refused(tmp_path):
    async with (
        running(tmp_path / "source") as (source, there),
        running(tmp_path / "here", **following(source)) as (_, here),
    ):
        await create(there, "orders")
        answer = await ask(here, "orders")
        assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "broker broker-0 is at the migration's source" in answer.remark


@looped
async def test_two_that_follow_each_other_do_not_ask_each_other_for_ever(tmp_path):
    async with running(tmp_path / "a") as (one, _):
        listener = ListenerConfig(port=one.server.listeners[0].port)
    both = {"listeners": (listener,), **following(f"127.0.0.1:{listener.port}")}
    async with running(tmp_path / "a", **both) as (_, itself):
        assert (await ask(itself, "orders")).code == ResponseCode.TOPIC_NOT_EXIST
