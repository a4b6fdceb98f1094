"""Pulling: every status, waiting, and what ends the waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gateway.config import LimitsConfig, TopicsConfig
from gateway.processors import pull
from gateway.wire import bodies, properties
from gateway.wire.codes import ResponseCode
from gateway.wire.commands.namesrv import GetAllTopicList
from gateway.wire.commands.pull import PullReply
from gateway.wire.frame import encode_frame
from gateway.wire.header import to_fields
from routing.api import PERM_WRITE, Group, Topic
from storage.api import LogDamagedError, LogUnavailableError
from tests.remoting import (
    beat,
    committing,
    connect,
    looped,
    pulling,
    running,
    sending,
    until,
    waiting,
)

if TYPE_CHECKING:
    from pathlib import Path


async def fill(client, count: int, *, tag: str | None = None) -> None:
    pairs = {"TAGS": tag} if tag else {}
    for number in range(count):
        await client.ask(sending("orders", pairs=pairs), b"%d" % number)


def offsets_of(frame) -> list[int]:
    return [one.queue_offset for one in frame.messages()]


@looped
@pytest.mark.parametrize("code", [11, 361])
async def test_messages_come_in_order_from_the_offset_on(tmp_path: Path, code: int):
    async with running(tmp_path) as (_, client):
        await fill(client, 10)
        fields = to_fields(pulling("orders", 3, max_msg_nums=4))
        answer = await client.ask(code, fields=fields)
        assert (answer.code, answer.remark) == (0, "FOUND")
        assert offsets_of(answer) == [3, 4, 5, 6]
        reply = answer.read(PullReply)
        assert reply.next_begin_offset == 7
        assert (reply.min_offset, reply.max_offset) == (0, 10)
        assert (reply.topic_sys_flag, reply.group_sys_flag) == (0, 0)


@looped
async def test_the_answer_is_byte_for_byte_an_encoded_frame(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await fill(client, 3)
        answer = await client.ask(pulling("orders"))
        names = (
            "suggestWhichBrokerId",
            "groupSysFlag",
            "nextBeginOffset",
            "maxOffset",
            "minOffset",
            "topicSysFlag",
        )
        assert answer.raw == encode_frame(
            0,
            answer.opaque,
            flag=1,
            fields={name: answer.fields[name] for name in names},
            body=answer.body,
            remark="FOUND",
        )


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
        assert len(app.node.holds) == 0


@looped
async def test_what_does_not_match_is_passed_over_at_once(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await fill(client, 5, tag="a")
        answer = await client.ask(waiting("orders", subscription="b"))
        assert answer.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        assert answer.remark == "NO_MATCHED_MESSAGE"
        assert answer.read(PullReply).next_begin_offset == 5


@looped
async def test_tags_with_one_hash_are_told_apart(tmp_path: Path):
    assert properties.tag_hash("Aa") == properties.tag_hash("BB")
    async with running(tmp_path) as (_, client):
        for tag in ("Aa", "BB", "Aa", "C", "BB"):
            await client.ask(sending("orders", pairs={"TAGS": tag}), tag.encode())
        for expression, wanted in (
            ("Aa", [0, 2]),
            ("BB", [1, 4]),
            (" BB || C ", [1, 3, 4]),
            ("Aa||BB", [0, 1, 2, 4]),
            ("*", [0, 1, 2, 3, 4]),
            ("", [0, 1, 2, 3, 4]),
        ):
            found = await client.ask(pulling("orders", subscription=expression))
            assert offsets_of(found) == wanted, expression


@looped
async def test_what_a_pull_may_not_have_is_refused_with_its_code(tmp_path: Path):
    topics = TopicsConfig(auto_create_groups=False)
    async with running(tmp_path, topics=topics) as (app, client):
        node = app.node
        await fill(client, 1)
        await node.groups.put(Group(name="readers"))
        await node.groups.put(Group(name="off", consume_enable=False))
        closed = Topic(
            name="closed", read_queue_nums=1, write_queue_nums=1, perm=PERM_WRITE
        )
        await node.topics.put(closed)
        narrow = Topic(name="narrow", read_queue_nums=1, write_queue_nums=4)
        await node.topics.put(narrow)
        for header, code in (
            (pulling("orders"), 0),
            (pulling("orders", group="x"), ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
            (pulling("orders", group="off"), ResponseCode.NO_PERMISSION),
            (pulling("nothing"), ResponseCode.TOPIC_NOT_EXIST),
            (pulling("closed"), ResponseCode.NO_PERMISSION),
            (pulling("orders", queue_id=4), ResponseCode.INVALID_PARAMETER),
            (pulling("orders", queue_id=-1), ResponseCode.INVALID_PARAMETER),
            (pulling("narrow", queue_id=1), ResponseCode.INVALID_PARAMETER),
            (
                pulling("orders", subscription="||"),
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            ),
            (
                pulling("orders", subscription="a > 1", expression_type="SQL92"),
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            ),
            (pulling("orders", sys_flag=0), ResponseCode.SUBSCRIPTION_NOT_EXIST),
        ):
            answer = await client.ask(header)
            assert answer.code == code, (header, answer.remark)


@looped
async def test_a_pull_without_a_subscription_takes_the_groups(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        for tag in ("a", "b"):
            await client.ask(sending("orders", pairs={"TAGS": tag}), b"x")
        await beat(client, "me", "readers", expression="b", version=5)
        answer = await client.ask(pulling("orders", sys_flag=0, sub_version=5))
        assert offsets_of(answer) == [1]
        answer = await client.ask(pulling("orders", sys_flag=0, sub_version=6))
        assert answer.code == ResponseCode.SUBSCRIPTION_NOT_LATEST
        await client.ask(sending("other"), b"x")
        answer = await client.ask(pulling("other", sys_flag=0))
        assert answer.code == ResponseCode.SUBSCRIPTION_NOT_EXIST
        await app.node.groups.put(Group(name="readers", consume_broadcast_enable=False))
        await beat(client, "me", "readers", message_model=bodies.BROADCASTING)
        answer = await client.ask(pulling("orders", sys_flag=0))
        assert answer.code == ResponseCode.NO_PERMISSION


@looped
async def test_a_new_group_is_made_by_its_first_pull(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        assert (await client.ask(pulling("orders", group="new"))).code == 0
        assert app.node.groups.get("new")
        answer = await client.ask(pulling("orders", group="not legal"))
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


@looped
async def test_counts_and_bytes_of_a_pull_are_limited(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        for _ in range(6):
            await client.ask(sending("orders"), b"x" * 1000)
        answer = await client.ask(pulling("orders", max_msg_bytes=2700))
        assert offsets_of(answer) == [0, 1]
        answer = await client.ask(pulling("orders", max_msg_bytes=1))
        assert offsets_of(answer) == [0]
        for number in (0, -1):
            answer = await client.ask(pulling("orders", max_msg_nums=number))
            assert offsets_of(answer) == [0]
        for size in (0, -1, 2**31 - 1):
            answer = await client.ask(pulling("orders", max_msg_bytes=size))
            assert len(offsets_of(answer)) == 6


@looped
async def test_a_pull_commits_how_far_its_group_has_come(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 3)
        offsets = app.node.offsets
        await client.ask(pulling("orders", 1))
        assert offsets.get("readers", "orders", 0) is None
        await client.ask(committing("orders", 2, 2))
        assert offsets.get("readers", "orders", 0) == 2
        await client.ask(committing("orders", 2, -1))
        assert offsets.get("readers", "orders", 0) == 2


@looped
async def test_a_waiting_pull_is_answered_by_the_next_message(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 2)
        held = [client.send(waiting("orders", 2)) for _ in range(50)]
        empty = client.send(waiting("orders", 0, queue_id=3))
        await until(lambda: len(app.node.holds) == 51)
        (connection,) = app.server.listeners[0].connections
        assert connection.in_flight == 0
        await fill(client, 1)
        for answer in await asyncio.gather(*held):
            assert offsets_of(answer) == [2]
        assert not empty.done()
        await client.ask(sending("orders", queue_id=3), b"x")
        assert offsets_of(await empty) == [0]
        assert len(app.node.holds) == 0
        assert connection.in_flight == 0


@looped
async def test_only_a_matching_tag_wakes_a_waiting_pull(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        held = client.send(waiting("orders", 1, subscription="Aa"))
        await until(lambda: len(app.node.holds) == 1)
        await fill(client, 3, tag="C")
        await fill(client, 3, tag="BB")
        await client.ask(GetAllTopicList())
        assert not held.done()
        await fill(client, 1, tag="Aa")
        answer = await held
        assert offsets_of(answer) == [7]


@looped
async def test_a_waiting_pull_ends_in_time_behind_what_it_has_seen(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        held = client.send(
            waiting("orders", 1, subscription="b", suspend_timeout_millis=300)
        )
        await until(lambda: len(app.node.holds) == 1)
        await fill(client, 2, tag="a")
        answer = await held
        assert answer.code == ResponseCode.PULL_NOT_FOUND
        assert answer.read(PullReply).next_begin_offset == 3
        assert len(app.node.holds) == 0


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
@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_a_pull_without_time_does_not_wait(tmp_path: Path, timeout_ms: int):
    async with running(tmp_path) as (_, client):
        await fill(client, 1)
        header = waiting("orders", 1, suspend_timeout_millis=timeout_ms)
        assert (await client.ask(header)).code == ResponseCode.PULL_NOT_FOUND


@looped
async def test_one_pull_too_many_is_answered_at_once(tmp_path: Path):
    async with running(tmp_path, limits=LimitsConfig(held_pulls=3)) as (app, client):
        await fill(client, 1)
        held = [client.send(waiting("orders", 1)) for _ in range(3)]
        await until(lambda: len(app.node.holds) == 3)
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
            await until(lambda: len(app.node.holds) == 4)
            mine = client.send(waiting("orders", 1))
            await until(lambda: len(app.node.holds) == 5)
            other.writer.transport.abort()
            await until(lambda: len(app.node.holds) == 1)
        await fill(client, 1)
        assert offsets_of(await mine) == [1]


@looped
async def test_waiting_pulls_of_a_deleted_topic_are_answered(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        held = client.send(waiting("orders", 1))
        await until(lambda: len(app.node.holds) == 1)
        await app.node.topics.delete("orders")
        assert (await held).code in {
            ResponseCode.PULL_NOT_FOUND,
            ResponseCode.TOPIC_NOT_EXIST,
        }
        assert len(app.node.holds) == 0
        answer = await client.ask(waiting("orders", 1))
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST


@looped
async def test_waiting_pulls_are_answered_at_shutdown(tmp_path: Path):
    async with running(tmp_path) as (app, client):
        await fill(client, 1)
        held = [client.send(waiting("orders", 1)) for _ in range(5)]
        await until(lambda: len(app.node.holds) == 5)
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
        await until(lambda: len(app.node.holds) == 3)
        await fill(client, 1)
        for answer in await asyncio.gather(*held):
            assert answer.code == code
        (connection,) = app.server.listeners[0].connections
        assert connection.in_flight == 0


@looped
async def test_old_messages_are_read_from_the_disk(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await fill(client, 5)
    async with running(tmp_path) as (_, client):
        futures = [client.send(pulling("orders", one)) for one in range(5)]
        for first, answer in enumerate(await asyncio.gather(*futures)):
            assert offsets_of(answer) == list(range(first, 5))
