"""Producing where the log refuses: nothing is acknowledged that is not stored."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.node import accounts
from ropeway.gateway.processors import throttling
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.commands.quotas import SetQuota
from ropeway.gateway.wire.commands.send import SendBatchMessage, SendReply
from ropeway.storage.api import LogUnavailableError, NoSuchPartitionError, NotReadyError
from tests.remoting import looped, running, two_running, until
from tests.requests import batch_of, pulling, sending

if TYPE_CHECKING:
    from pathlib import Path


def batch_header(topic: str) -> SendBatchMessage:
    made = sending(topic)
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    return SendBatchMessage(**{**fields, "batch": True})


async def stored(client, topic: str) -> list:
    return (await client.ask(pulling(topic))).messages()


class Refusing:
    """A partition whose appends fail, now or later."""

    def __init__(self, partition, error, *, later: bool) -> None:
        self._partition = partition
        self._error = error
        self._later = later

    def __getattr__(self, name: str):
        return getattr(self._partition, name)

    def append(self, _records, _store_ms, done) -> None:
        if not self._later:
            raise self._error
        asyncio.get_running_loop().call_soon(done, -1, self._error)


@pytest.mark.rule(
    "README.md",
    "A message is acknowledged only when it is as durable as the log is set up",
)
@looped
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LogUnavailableError("disk full"), ResponseCode.SERVICE_NOT_AVAILABLE),
        (NoSuchPartitionError("deleted"), ResponseCode.TOPIC_NOT_EXIST),
    ],
)
async def test_what_the_log_refuses_is_not_acknowledged(
    tmp_path: Path, error, code: int, later: bool
):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        topic = app.node.topics.get("orders")
        topic.partitions[0] = Refusing(topic.partitions[0], error, later=later)
        for header, body in (
            (sending("orders"), b"x"),
            (batch_header("orders"), batch_of(b"x", b"y")),
        ):
            answer = await client.ask(header, body)
            assert (answer.code, answer.remark) == (code, str(error))
        client.send(sending("orders"), b"x", one_way=True)
        await client.ask(GetAllTopicList())
        (connection,) = app.server.listeners[0].connections
        await until(lambda: connection.in_flight == 0)
        assert (await client.ask(sending("orders", queue_id=1), b"x")).code == 0


@looped
async def test_a_full_disk_is_not_an_acknowledgement_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running(tmp_path) as (_, client):
        assert (await client.ask(sending("orders"), b"kept")).code == 0

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("ropeway.storage.file.writer.write_block", full)
            futures = [client.send(sending("orders"), b"lost") for _ in range(10)]
            for answer in await asyncio.gather(*futures):
                assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
                assert "No space" in answer.remark
        answer = await client.ask(sending("orders"), b"again")
        assert answer.read(SendReply).queue_offset == 1
        assert [one.body for one in await stored(client, "orders")] == [
            b"kept",
            b"again",
        ]


@looped
async def test_a_topic_deleted_with_sends_in_flight_answers_each(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        futures = [client.send(sending("orders"), b"x") for _ in range(50)]
        await app.node.topics.delete("orders")
        answers = await asyncio.gather(*futures)
        assert {one.code for one in answers} <= {0, ResponseCode.TOPIC_NOT_EXIST}
        assert (await client.ask(sending("orders"), b"x")).code == 0


@looped
@pytest.mark.parametrize("pairs", [{}, {"TIMER_DELAY_MS": "3600000"}])
async def test_a_send_to_a_topic_that_is_shut_waits_until_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: dict[str, str]
):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders"), b"x")
        topic = app.node.timer.topic if pairs else app.node.topics.get("orders")
        true = topic.partitions[0]
        end = true.end
        shut = Refusing(true, NotReadyError(topic.name), later=False)
        topic.partitions[0] = shut

        async def ready(name: str, _: object) -> None:
            if name == topic.name:
                topic.partitions[0] = true

        monkeypatch.setattr(app.node.log, "ready", ready)
        answer = await client.ask(sending("orders", pairs=pairs), b"x")
        assert answer.code == 0
        assert topic.partitions[0] is true
        await until(lambda: true.end == end + 1)


@pytest.mark.parametrize("fault", ["large batch", "shut"])
@looped
async def test_a_send_that_waits_twice_is_charged_once(tmp_path, monkeypatch, fault):
    """For its quota, and for its batch to be made or its queue to be opened."""
    monkeypatch.setattr(throttling, "FORWARDED_S", 0.05)
    monkeypatch.setattr(accounts, "MAX_DEBT_S", 1e9)
    async with two_running(tmp_path) as ((near, client), (far, other)):
        for one in (near, far):
            await until(lambda one=one: one.node.forwarder.others)
        await other.ask(sending("orders"), b"x")
        limits = SetQuota("topic", "orders", send_bytes_per_s=1)
        assert (await other.ask(limits)).code == 0
        for_far = msgspec.structs.replace(sending("orders"), bname="broker-1")
        assert (await client.ask(for_far, b"x" * 1000)).code == 0
        account = far.node.quotas.sends["orders"]
        owed, body = -account._bytes._level, batch_of(*[bytes(100)] * 5000)
        if fault == "shut":
            topic = far.node.topics.get("orders")
            true = topic.partitions[0]
            topic.partitions[0] = Refusing(true, NotReadyError("orders"), later=False)

            async def ready(*_: object) -> None:
                topic.partitions[0] = true

            monkeypatch.setattr(far.node.log, "ready", ready)
            body = batch_of(b"x" * 5000)
        batch = msgspec.structs.replace(for_far, batch=True)
        assert (await client.ask(batch, body)).code == 0
        assert account.throttled == 1
        assert -account._bytes._level < owed + len(body) * 1.5
