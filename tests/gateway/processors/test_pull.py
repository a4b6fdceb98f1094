"""Pulling: every status, waiting, and what ends the waiting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.request_limits import PullsConfig
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.pull import PullReply
from ropeway.gateway.wire.frame import encode_frame
from ropeway.gateway.wire.header import to_fields
from tests.remoting import looped, running
from tests.requests import committing, pulling, sending, waiting

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
async def test_what_has_to_be_fetched_comes_in_an_answer_of_its_own_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pulls = PullsConfig(count=4, disk_count=2)
    async with running(tmp_path, pulls=pulls) as (app, client):
        await fill(client, 10)
        assert len(offsets_of(await client.ask(pulling("orders")))) == 4
        (partition, *_) = app.node.topics.get("orders").partitions
        monkeypatch.setattr(type(partition), "read_now", lambda *_: None)
        assert len(offsets_of(await client.ask(pulling("orders")))) == 2


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
async def test_a_pull_gives_as_much_as_rocketmqs_does(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        for size in [10] * 40 + [200_000] * 2:
            await client.ask(sending("orders"), b"x" * size)
        answer = await client.ask(pulling("orders", max_msg_nums=1024))
        assert offsets_of(answer) == [*range(32)]
        answer = await client.ask(pulling("orders", 40, max_msg_bytes=1 << 22))
        assert offsets_of(answer) == [40]
        whole = pulling("orders", max_msg_nums=1024, bulk=True)
        assert offsets_of(await client.ask(whole)) == [*range(42)]


@looped
async def test_how_much_a_pull_gives_can_be_set(tmp_path: Path):
    pulls = PullsConfig(count=3, size_bytes=1 << 20, bulk_count=5)
    async with running(tmp_path, pulls=pulls) as (_, client):
        await fill(client, 8)
        for bulk, count in ((None, 3), (False, 3), (True, 5)):
            answer = await client.ask(pulling("orders", bulk=bulk))
            assert offsets_of(answer) == [*range(count)]


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
async def test_old_messages_are_read_from_the_disk(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        await fill(client, 5)
    async with running(tmp_path) as (_, client):
        futures = [client.send(pulling("orders", one)) for one in range(5)]
        for first, answer in enumerate(await asyncio.gather(*futures)):
            assert offsets_of(answer) == list(range(first, 5))
