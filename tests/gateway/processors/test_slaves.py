"""A slave reads messages for clients; whatever else they want, the master does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from ropeway.gateway.wire.commands.offsets import (
    GetMaxOffset,
    GetMinOffset,
    Offset,
    SearchOffset,
)
from ropeway.gateway.wire.commands.query import QueryMessage
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.storage.api import LogError, LogUnavailableError, NotReadyError
from tests.remoting import Remoting, looped, two_running, until
from tests.requests import committing, pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path

    from ropeway.gateway.app import App
    from ropeway.storage.api import Partition


class Pair(NamedTuple):
    slave: App
    master: App
    client: Remoting
    """Of the slave."""
    partition: Partition
    """What the slave has of the topic: one message, where the master has two."""

    def lead_no_more(self) -> None:
        """Nobody leads, and the slave does not either, yet."""
        self.slave.node.leadership.is_led_elsewhere = lambda: False


@asynccontextmanager
async def pair(data: Path):
    """Two nodes of which one is made a slave of the other.

    Their logs differ, so that answers show whose they are.
    """
    async with two_running(data) as ((slave, client), (master, other)):
        await client.ask(sending("orders", pairs={"KEYS": "k"}), b"from the slave")
        for text in (b"from", b"the master"):
            await other.ask(sending("orders"), text)
        leadership = slave.node.leadership

        async def settle(*, expected):
            return master.node.routes.brokers["broker-1"][0]

        leadership.settle = settle
        leadership.is_led_elsewhere = lambda: True
        leadership.leads = False
        slave.node.topics.follows = True
        partition = slave.node.topics.get("orders").partitions[0]
        yield Pair(slave, master, client, partition)


@looped
async def test_reads_are_answered_here_and_the_rest_by_the_master(tmp_path: Path):
    async with pair(tmp_path) as (_, master, client, _):
        found = await client.ask(pulling("orders"))
        assert [one.body for one in found.messages()] == [b"from the slave"]
        for header, offset in (
            (GetMaxOffset(topic="orders", queue_id=0), 1),
            (GetMinOffset(topic="orders", queue_id=0), 0),
            (SearchOffset(topic="orders", queue_id=0, timestamp=1 << 60), 1),
        ):
            assert (await client.ask(header)).read(Offset).offset == offset
        query = QueryMessage(
            topic="orders",
            key="k",
            max_num=9,
            begin_timestamp=0,
            end_timestamp=1 << 60,
        )
        found = await client.ask(query)
        assert [one.body for one in found.messages()] == [b"from the slave"]
        sent = await client.ask(sending("orders"), b"x")
        assert sent.read(SendReply).queue_offset == 2
        # Offsets are the master's, as locks are.
        asked = {"consumerGroup": "readers", "topic": "orders", "queueId": "0"}
        await client.ask(
            RequestCode.UPDATE_CONSUMER_OFFSET, fields={**asked, "commitOffset": "2"}
        )
        assert master.node.offsets.get("readers", "orders", 0) == 2
        answer = await client.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields=asked)
        assert answer.fields["offset"] == "2"


@looped
async def test_what_a_slave_does_not_have_the_master_is_asked_for(tmp_path: Path):
    async with pair(tmp_path) as (slave, master, client, partition):
        # It may be late, so it does not say that an offset is behind the end.
        answer = await client.ask(pulling("orders", 2))
        assert (answer.code, answer.read_end()) == (ResponseCode.PULL_NOT_FOUND, 2)
        answer = await client.ask(pulling("orders", 9))
        assert (answer.code, answer.read_end()) == (ResponseCode.PULL_OFFSET_MOVED, 2)
        answer = await client.ask(pulling("orders", queue_id=9))
        assert "queueId[9] is illegal" in answer.remark
        slave.node.topics.get = lambda _: None
        found = await client.ask(pulling("orders"))
        assert [one.body for one in found.messages()] == [b"from", b"the master"]
        answer = await client.ask(GetMaxOffset(topic="orders", queue_id=0))
        assert answer.read(Offset).offset == 2
        assert partition.end == 1
        assert master.node.leadership.leads


class Broken:
    """A partition that cannot be read now."""

    def __init__(self, error: LogError) -> None:
        self._error = error

    @property
    def first(self) -> int:
        raise self._error

    end = first


@looped
@pytest.mark.parametrize("error", [LogUnavailableError("x"), NotReadyError("orders")])
async def test_while_the_log_cannot_be_read_here_the_master_reads_it(
    tmp_path: Path, error: LogError, monkeypatch
):
    async with pair(tmp_path) as (slave, _, client, _):

        async def refuse(_):
            raise LogUnavailableError("it cannot be opened")

        monkeypatch.setattr(type(slave.node.log), "ready", lambda _, __: refuse(_))
        slave.node.topics.get("orders").partitions[0] = Broken(error)
        found = await client.ask(pulling("orders"))
        assert [one.body for one in found.messages()] == [b"from", b"the master"]


@looped
async def test_a_pull_that_commits_goes_to_the_master_while_there_is_one(
    tmp_path: Path,
):
    async with pair(tmp_path) as made:
        slave, master, client, _ = made
        found = await client.ask(committing("orders", 0, 1))
        assert len(found.messages()) == 2
        assert master.node.offsets.get("readers", "orders", 0) == 1
        made.lead_no_more()
        found = await client.ask(committing("orders", 0, 2))
        assert [one.body for one in found.messages()] == [b"from the slave"]
        assert slave.node.offsets.get("readers", "orders", 0) is None


@looped
async def test_a_pull_that_waits_is_woken_by_what_comes_to_the_slave(tmp_path: Path):
    async with pair(tmp_path) as made:
        slave, _, client, partition = made
        made.lead_no_more()
        at_the_end = client.send(waiting("orders", 1))
        behind = client.send(waiting("orders", 2))
        await until(lambda: len(slave.node.pull_hold) == 2)
        topic = slave.node.topics.get("orders")
        for text, pull in ((b"one", at_the_end), (b"two", behind)):
            slave.node.leadership.leads = True
            await client.ask(sending("orders"), text)
            slave.node.leadership.leads = False
            assert [one.body for one in (await pull).messages()] == [text]
        assert topic.partitions[0].end == partition.end == 3


@looped
async def test_a_node_that_neither_leads_nor_follows_hands_out_nothing(tmp_path: Path):
    async with pair(tmp_path) as (slave, _, client, _):
        pull = client.send(waiting("orders", 1))
        await until(lambda: len(slave.node.pull_hold))
        slave.node.topics.follows = False
        slave.node.leadership.is_certain = lambda: False
        for line in list(slave.node.pull_hold._lines.values()):
            slave.node.pull_hold.wake(line.key)
        answer = await pull
        assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        found = await client.ask(pulling("orders"))
        assert [one.body for one in found.messages()] == [b"from", b"the master"]
