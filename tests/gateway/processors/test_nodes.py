"""What `ropeway` asks nodes, over the wire."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from ropeway.gateway import __version__
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.nodes import (
    GetNodeStatus,
    GetTopicPlaces,
    NodeStatus,
    StepBack,
    TopicPlaces,
)
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.routing.api import Topic


@looped
async def test_a_node_says_how_it_stands(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        before_ms = time.time_ns() // 1_000_000
        answer = await client.ask(GetNodeStatus())
        status = msgspec.json.decode(answer.body, type=NodeStatus)
        assert before_ms <= status.time_ms <= time.time_ns() // 1_000_000
        assert status.leads
        assert status.routes_held
        assert (status.broker, status.node) == ("broker-0", "broker-0")
        assert (status.log, status.routes) == ("embedded", "embedded")
        assert status.version == __version__
        assert status.overdue_ms == 0
        assert int(status.log_facts["disk_free_bytes"]) > 0
        assert status.started_ms == app.node.started_ms


@looped
async def test_a_node_says_which_brokers_have_queues_and_no_node(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")

        def spread(topic: Topic | None) -> Topic | None:
            assert topic is not None
            route = topic.route | {"broker-9": [40], "broker-8": []}
            return msgspec.structs.replace(topic, route=route)

        await app.node.routes.change_topic("orders", spread)
        answer = await client.ask(GetNodeStatus())
        status = msgspec.json.decode(answer.body, type=NodeStatus)
        assert status.brokers_gone == {"broker-9": 1}


@looped
async def test_places_are_the_partitions_of_a_topics_queues(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        answer = await client.ask(GetTopicPlaces(topic="orders"))
        places = msgspec.json.decode(answer.body, type=TopicPlaces).places
        assert places == app.node.routes.topics["orders"].route
        absent = await client.ask(GetTopicPlaces(topic="nothing"))
        assert absent.code == ResponseCode.TOPIC_NOT_EXIST
        assert absent.remark == "No topic in the route store. topic: nothing"


@looped
async def test_a_node_of_an_embedded_log_says_why_it_cannot_step_back(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        answer = await client.ask(StepBack())
        assert answer.code == ResponseCode.ILLEGAL_OPERATION
        assert answer.remark.startswith("broker broker-0 keeps its messages in an embe")
        assert app.node.leadership.leads
