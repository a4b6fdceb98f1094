"""A whole node over restarts: what is kept, what is not, and what is refused."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from ropeway.gateway.app import App
from ropeway.gateway.wire import bodies
from ropeway.gateway.wire.codes import RequestCode
from ropeway.gateway.wire.commands.offsets import QueryConsumerOffset
from ropeway.storage.api import LogInUseError
from tests.remoting import ROOMY, config, looped, running, until
from tests.requests import committing, pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_a_restart_keeps_messages_topics_groups_and_offsets(tmp_path: Path):
    for start in range(3):
        async with running(tmp_path) as (app, client):
            assert not app.node.locks.is_ordered("readers")
            for number in range(5):
                await client.ask(sending("orders"), b"%d" % number)
            found = await client.ask(committing("orders", 0, 5 * start + 1))
            assert [one.body for one in found.messages()] == [
                b"%d" % number for number in range(5)
            ] * (start + 1)
            assert app.node.groups.get("readers")
            wanted = bodies.LockBatchBody(
                consumer_group="readers",
                client_id="me",
                mq_set=[bodies.MessageQueue("broker-0", 0, "orders")],
            )
            asked = RequestCode.LOCK_BATCH_MQ
            await client.ask(asked, bodies.encode(wanted), fields={})
            assert app.node.locks.is_ordered("readers")
    async with running(tmp_path) as (_, client):
        kept = QueryConsumerOffset(consumer_group="readers", topic="orders", queue_id=0)
        assert (await client.ask(kept)).fields == {"offset": "11"}


@looped
async def test_a_deleted_topic_begins_again_without_its_past(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"old")
        await client.ask(committing("orders", 0, 1))
        await app.node.topics.delete("orders")
        await client.ask(sending("orders"), b"new")
        (found,) = (await client.ask(pulling("orders"))).messages()
        assert (found.body, found.queue_offset) == (b"new", 0)
        assert app.node.offsets.get("readers", "orders", 0) is None


@looped
async def test_messages_that_a_power_cut_took_leave_no_offsets_beyond_the_end(
    tmp_path: Path,
):
    data, before = config(tmp_path).data, tmp_path / "before"
    delayed = sending("orders", pairs={"DELAY": "1"})
    async with running(tmp_path, delay_levels="1s 1h") as (_, client):
        await client.ask(sending("orders"), b"kept")
    shutil.copytree(data / "log", before)
    async with running(tmp_path, delay_levels="1s 1h") as (app, client):
        await client.ask(delayed, b"lost")
        await client.ask(sending("orders"), b"lost")
        (partition, *_) = app.node.topics.get("orders").partitions
        await until(lambda: partition.end == 3)
        await client.ask(committing("orders", 0, 3))
    shutil.rmtree(data / "log")
    before.rename(data / "log")
    async with running(tmp_path, delay_levels="1s 1h") as (app, client):
        kept = QueryConsumerOffset(consumer_group="readers", topic="orders", queue_id=0)
        assert (await client.ask(kept)).fields == {"offset": "1"}
        await client.ask(delayed, b"new")
        (found,) = (await client.ask(waiting("orders", 1))).messages()
        assert found.body == b"new"


@looped
async def test_one_directory_serves_one_node(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        with pytest.raises(LogInUseError):
            async with App(config(tmp_path)):
                pass
        assert (await client.ask(sending("orders"), b"x")).code == 0


@pytest.mark.parametrize(
    ("flush", "takes"), [("async", "may take what was"), ("sync", "takes nothing that")]
)
@looped
async def test_a_node_says_what_a_loss_of_power_takes(
    tmp_path: Path, flush: str, takes: str
):
    given = config(tmp_path, log=structs.replace(ROOMY, flush=flush))
    stop = asyncio.Event()
    stop.set()
    with capture_logs() as said:
        async with App(given) as app:
            await app.run(stop)
    (line,) = [one for one in said if one["event"] == "serving"]
    assert line["flush"] == flush
    assert line["power_loss"].startswith(takes)
