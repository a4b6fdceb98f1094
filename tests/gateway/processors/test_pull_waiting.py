"""Waiting pulls: what ends the waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.config import LimitsConfig
from ropeway.gateway.processors import pull
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.namesrv import GetAllTopicList
from ropeway.gateway.wire.commands.pull import (
    COMMIT_OFFSET_FLAG,
    SUBSCRIPTION_FLAG,
    SUSPEND_FLAG,
    PullReply,
)
from ropeway.routing.api import PERM_WRITE, Group
from ropeway.storage.api import LogDamagedError, LogUnavailableError
from tests.remoting import beat, connect, looped, running, until
from tests.requests import pulling, sending, waiting

if TYPE_CHECKING:
    from pathlib import Path


async def fill(client, count: int, *, tag: str | None = None) -> None:
    pairs = {"TAGS": tag} if tag else {}
    for number in range(count):
        await client.ask(sending("orders", pairs=pairs), b"%d" % number)


def offsets_of(frame) -> list[int]:
    return [one.queue_offset for one in frame.messages()]


@looped
@pytest.mark.parametrize(
    ("count", "offset", "code", "remark", "next_offset"),
    [
        (0, 0, ResponseCode.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE", 0),
        (0, 9, ResponseCode.PULL_OFFSET_MOVED, "NO_MESSAGE_IN_QUEUE", 0),
        (3, 3, ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", 3),
        (3, 4, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", 3),
        (3, 2**62, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", 3),
        (3, -1, ResponseCode.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", 0),
    ],
)
async def test_offsets_outside_the_queue_say_where_to_go_on(
    tmp_path: Path, count, offset, code, remark, next_offset
):
    async with running(tmp_path) as (app, client):
        await client.ask(sending("orders", queue_id=1), b"other")
        await fill(client, count)
        answer = await client.ask(pulling("orders", offset))
        assert (answer.code, answer.remark) == (code, remark)
        assert answer.read(PullReply).next_begin_offset == next_offset
        # To move is an answer that does not wait.
        if code == ResponseCode.PULL_OFFSET_MOVED:
            assert (await client.ask(waiting("orders", offset))).code == code
        assert len(app.node.pull_hold) == 0


@looped
async def test_a_waiting_pull_is_answered_by_the_next_message(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 2)
        held = [client.send(waiting("orders", 2)) for _ in range(50)]
        empty = client.send(waiting("orders", 0, queue_id=3))
        await until(lambda: len(app.node.pull_hold) == 51)
        (connection,) = app.server.listeners[0].connections
        assert connection.in_flight == 0
        await fill(client, 1)
        for answer in await asyncio.gather(*held):
            assert offsets_of(answer) == [2]
        assert not empty.done()
        await client.ask(sending("orders", queue_id=3), b"x")
        assert offsets_of(await empty) == [0]
        assert len(app.node.pull_hold) == 0
        assert connection.in_flight == 0


@looped
async def test_only_a_matching_tag_wakes_a_waiting_pull(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        held = client.send(waiting("orders", 1, subscription="Aa"))
        await until(lambda: len(app.node.pull_hold) == 1)
        await fill(client, 3, tag="C")
        await fill(client, 3, tag="BB")
        await client.ask(GetAllTopicList())
        assert not held.done()
        await fill(client, 1, tag="Aa")
        answer = await held
        assert offsets_of(answer) == [7]


@looped
@pytest.mark.parametrize(("before", "after"), [("a", "b"), ("*", "b"), ("a", "*")])
async def test_a_pull_does_not_pass_over_what_its_group_wants_since_it_waits(
    tmp_path: Path, before: str, after: str
):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        await beat(client, "c1", "readers", expression=before, version=1)
        held = client.send(waiting("orders", 1, sys_flag=SUSPEND_FLAG, sub_version=1))
        await until(lambda: len(app.node.pull_hold) == 1)
        await beat(client, "c1", "readers", expression=after, version=2)
        await fill(client, 1, tag="b")
        answer = await held
        assert answer.code == ResponseCode.PULL_NOT_FOUND
        assert answer.read(PullReply).next_begin_offset == 1
        again = pulling("orders", 1, sys_flag=0, sub_version=2)
        assert offsets_of(await client.ask(again)) == [1]


@looped
async def test_a_pull_that_does_not_say_so_does_not_wait(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        at_once = waiting("orders", 1, sys_flag=SUBSCRIPTION_FLAG | COMMIT_OFFSET_FLAG)
        assert (await client.ask(at_once)).code == ResponseCode.PULL_NOT_FOUND
        assert len(app.node.pull_hold) == 0


@looped
async def test_a_pull_waits_on_while_its_group_wants_the_same(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        await beat(client, "c1", "readers", expression="a", version=1)
        held = client.send(waiting("orders", 1, sys_flag=SUSPEND_FLAG, sub_version=1))
        await until(lambda: len(app.node.pull_hold) == 1)
        await beat(client, "c1", "readers", expression="a", version=1)
        await fill(client, 1, tag="b")
        await fill(client, 1, tag="a")
        assert offsets_of(await held) == [2]


@looped
async def test_a_waiting_pull_ends_behind_what_it_has_seen(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        held = client.send(waiting("orders", 1, subscription="b"))
        await until(lambda: len(app.node.pull_hold) == 1)
        await fill(client, 2, tag="a")
        # As when its time is up, which the clock would bring before, or behind, that.
        app.node.pull_hold.release_all()
        answer = await held
        assert answer.code == ResponseCode.PULL_NOT_FOUND
        assert answer.read(PullReply).next_begin_offset == 3
        assert len(app.node.pull_hold) == 0


@looped
@pytest.mark.parametrize("timeout_ms", [2**63 - 1, 10**15])
async def test_no_pull_waits_longer_than_the_node_allows(
    tmp_path: Path, timeout_ms: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pull, "MAX_SUSPEND_MS", 50)
    async with running(tmp_path) as (_, client):
        await fill(client, 1)
        header = waiting("orders", 1, suspend_timeout_millis=timeout_ms)
        assert (await client.ask(header)).code == ResponseCode.PULL_NOT_FOUND


@looped
@pytest.mark.parametrize(("timeout_ms", "waits"), [(0, False), (-1, False), (1, True)])
async def test_a_pull_without_time_does_not_wait(
    tmp_path: Path, timeout_ms: int, waits: bool
):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        waited = []
        add = app.node.pull_hold.add
        app.node.pull_hold.add = lambda *given: waited.append(given[3]) or add(*given)
        header = waiting("orders", 1, suspend_timeout_millis=timeout_ms)
        assert (await client.ask(header)).code == ResponseCode.PULL_NOT_FOUND
        assert waited == ([timeout_ms] if waits else [])


class Silent:
    """A partition that does not tell of what comes."""

    def __init__(self, partition) -> None:
        self._partition = partition

    def __getattr__(self, name: str):
        return getattr(self._partition, name)

    def watch(self, _) -> None:
        pass

    def unwatch(self, _) -> None:
        pass


@looped
@pytest.mark.parametrize("changed", [False, True])
async def test_when_its_time_is_up_a_pull_has_what_came_unless_its_group_wants_another(
    tmp_path: Path, changed: bool
):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        topic = app.node.topics.get("orders")
        topic.partitions[0] = Silent(topic.partitions[0])
        await beat(client, "c1", "readers", expression="a", version=1)
        held = client.send(waiting("orders", 1, sys_flag=SUSPEND_FLAG, sub_version=1))
        await until(lambda: len(app.node.pull_hold) == 1)
        if changed:
            await beat(client, "c1", "readers", expression="b", version=2)
        await fill(client, 1, tag="a")
        assert not held.done()
        app.node.pull_hold.release(topic.partitions[0])
        answer = await held
        assert offsets_of(answer) == ([] if changed else [1])
        if changed:
            assert answer.read(PullReply).next_begin_offset == 1


@looped
async def test_one_pull_too_many_is_answered_at_once(tmp_path: Path):
    # One client has three, as it may have no more than are left.
    async with running(tmp_path, limits=LimitsConfig(held_pulls=4)) as (app, client):
        await fill(client, 1)
        held = [client.send(waiting("orders", 1)) for _ in range(3)]
        await until(lambda: len(app.node.pull_hold) == 3)
        assert (await client.ask(waiting("orders", 1))).code == 19
        assert not any(one.done() for one in held)


@looped
async def test_the_pulls_of_a_dead_connection_wait_no_longer(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        async with connect(app.server.listeners[0]) as other:
            for queue_id in (0, 0, 1, 2):
                offset = 1 if queue_id == 0 else 0
                other.send(waiting("orders", offset, queue_id=queue_id))
            await until(lambda: len(app.node.pull_hold) == 4)
            mine = client.send(waiting("orders", 1))
            await until(lambda: len(app.node.pull_hold) == 5)
            other.writer.transport.abort()
            await until(lambda: len(app.node.pull_hold) == 1)
        await fill(client, 1)
        assert offsets_of(await mine) == [1]


@looped
async def test_waiting_pulls_of_a_deleted_topic_are_answered(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        held = client.send(waiting("orders", 1))
        await until(lambda: len(app.node.pull_hold) == 1)
        await app.node.topics.delete("orders")
        assert (await held).code in {
            ResponseCode.PULL_NOT_FOUND,
            ResponseCode.TOPIC_NOT_EXIST,
        }
        assert len(app.node.pull_hold) == 0
        answer = await client.ask(waiting("orders", 1))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST


@looped
async def test_waiting_pulls_are_answered_at_shutdown(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        held = [client.send(waiting("orders", 1)) for _ in range(5)]
        await until(lambda: len(app.node.pull_hold) == 5)
        await app.server.close(5)
        for answer in await asyncio.gather(*held):
            assert answer.code == ResponseCode.PULL_NOT_FOUND


class Faulty:
    """A partition that cannot be read."""

    def __init__(self, partition, *, cold: bool) -> None:
        self._partition = partition
        self._cold = cold

    def __getattr__(self, name: str):
        return getattr(self._partition, name)

    def read_now(self, *_):
        if self._cold:
            return
        raise LogDamagedError("block 7 is damaged")

    async def read(self, *_):
        await asyncio.sleep(0)
        raise LogUnavailableError("the disk does not answer")


@looped
@pytest.mark.parametrize("cold", [False, True])
async def test_a_fault_of_the_log_answers_pulls_that_ask_and_that_wait(
    tmp_path: Path, cold: bool
):
    code = ResponseCode.SERVICE_NOT_AVAILABLE if cold else ResponseCode.SYSTEM_ERROR
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        topic = app.node.topics.get("orders")
        topic.partitions[0] = Faulty(topic.partitions[0], cold=cold)
        answer = await client.ask(pulling("orders"))
        assert answer.code == code
        held = [client.send(waiting("orders", 1)) for _ in range(3)]
        await until(lambda: len(app.node.pull_hold) == 3)
        await fill(client, 1)
        for answer in await asyncio.gather(*held):
            assert answer.code == code
        (connection,) = app.server.listeners[0].connections
        assert connection.in_flight == 0


@looped
async def test_an_answer_that_fails_is_one_and_others_that_wait_have_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        held = [client.send(waiting("orders", 1)) for _ in range(3)]
        await until(lambda: len(app.node.pull_hold) == 3)
        found_frame, calls = pull.found_frame, []

        def fails_once(*args) -> bytes:
            calls.append(args)
            if len(calls) == 1:
                raise RuntimeError("an answer that cannot be made")
            return found_frame(*args)

        monkeypatch.setattr(pull, "found_frame", fails_once)
        await fill(client, 1)
        codes = [(await one).code for one in held]
        assert sorted(codes) == [ResponseCode.SUCCESS] * 2 + [ResponseCode.SYSTEM_ERROR]
        (connection,) = app.server.listeners[0].connections
        assert (connection.in_flight, len(app.node.pull_hold)) == (0, 0)


@looped
@pytest.mark.parametrize("changed", ["group", "topic"])
async def test_what_may_not_be_read_any_more_is_not_given_to_who_waits(
    tmp_path: Path, changed: str
):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        pull = client.send(waiting("orders", 1))
        await until(lambda: len(app.node.pull_hold) == 1)
        if changed == "group":
            await app.node.groups.put(Group(name="readers", consume_enable=False))
        else:
            setup = app.node.topics.get("orders").setup
            await app.node.topics.put(msgspec.structs.replace(setup, perm=PERM_WRITE))
        await fill(client, 1)
        answer = await pull
        assert (answer.code, answer.body) == (ResponseCode.PULL_NOT_FOUND, b"")
        assert (await client.ask(waiting("orders", 1))).code == (
            ResponseCode.NO_PERMISSION
        )
