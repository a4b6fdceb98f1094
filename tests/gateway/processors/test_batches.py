"""Batches over the wire: what is refused, and that nobody reads what is staged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.node import names
from ropeway.gateway.wire.batch import BatchEntry, encode_batch
from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.batches import (
    CommitBatch,
    LastBatch,
    LastBatchReply,
    Stage,
    StageReply,
)
from ropeway.gateway.wire.message import MAX_PROPERTIES_BYTES
from tests.guarded import ALICE, NOBODY, ROOT, allow, ask, guarded
from tests.remoting import looped, running
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

ONE = encode_batch([BatchEntry(0, b"a", "")])
STAGE = Stage(producer_id="sink", topic="orders", queue_id=0)


@looped
async def test_what_is_staged_is_seen_when_it_is_committed(tmp_path: Path) -> None:
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"before")
        offset = (await client.ask(STAGE, ONE)).read(StageReply).offset
        hidden = await client.ask(pulling(names.STAGED_TOPIC))
        assert hidden.code == ResponseCode.NO_PERMISSION
        body = json.dumps({"staged": {"broker-0": [offset]}}).encode()
        commit = CommitBatch(producer_id="sink", batch_id=0)
        assert json.loads((await client.ask(commit, body)).body) == json.loads(body)
        last = await client.ask(LastBatch(producer_id="sink"))
        assert last.read(LastBatchReply).batch_id == 0
        found = (await client.ask(pulling("orders"))).messages()
        assert [one.body for one in found] == [b"before", b"a"]


@pytest.mark.parametrize(
    ("request_", "body", "remark"),
    [
        (STAGE, b"", "no messages to stage; allowed: 1 or more"),
        (STAGE, ONE[:-1], "batch entry 0"),
        (
            STAGE,
            encode_batch([BatchEntry(0, b"x" * 4194305, "")]),
            "a message of 4194305 bytes in a batch; allowed: 4194304",
        ),
        (
            STAGE,
            encode_batch([BatchEntry(0, b"a", "DELAY\x013\x02")]),
            "a delay or a transaction is not supported",
        ),
        (
            STAGE,
            encode_batch([BatchEntry(0, b"a", "K\x01" + "v" * 32700)]),
            "properties of 32702 bytes in a batch; allowed: 32",
        ),
        (
            STAGE,
            encode_batch(
                [BatchEntry(0, b"a", "K\x01" + "v" * (MAX_PROPERTIES_BYTES - 258))]
            ),
            f"properties of {MAX_PROPERTIES_BYTES - 256} bytes in a batch; allowed: 32",
        ),
        (Stage(producer_id="a b", topic="orders", queue_id=0), ONE, "producerId: "),
        (Stage(producer_id="a", topic="none", queue_id=0), ONE, "not exist"),
        (Stage(producer_id="a", topic="orders", queue_id=99), ONE, "queueId[99]"),
        (
            Stage(producer_id="a", topic=names.SCHEDULE_TOPIC, queue_id=0),
            ONE,
            "sending message is forbidden",
        ),
        (
            CommitBatch(producer_id="sink", batch_id=-1),
            b'{"staged":{}}',
            "batchId is -1; allowed: 0 and more",
        ),
        (CommitBatch(producer_id="sink", batch_id=0), b"[]", "names no staged"),
        (
            CommitBatch(producer_id="sink", batch_id=0),
            b'{"staged":{"broker-0":[5]}}',
            "nothing is staged at offset 5",
        ),
        (
            CommitBatch(producer_id="sink", batch_id=0),
            b'{"staged":{"broker-0":[5,5]}}',
            "an offset is named twice; allowed: each once",
        ),
    ],
)
@looped
async def test_what_could_not_be_delivered_is_refused(
    tmp_path: Path, request_, body: bytes, remark: str
) -> None:
    async with running(tmp_path) as (_, client):
        await client.ask(sending("orders"), b"before")
        answer = await client.ask(request_, body)
        assert answer.code != 0
        assert remark in answer.remark


@looped
async def test_only_who_staged_commits_and_nobody_else_commits_as_its_producer(
    tmp_path: Path,
) -> None:
    rules = (allow("Topic:orders", "Pub", "Sub"), allow("Group:*", "Sub"))
    async with guarded(tmp_path, *rules) as (_, client):
        await ask(client, ROOT, sending("orders"), b"before")
        offsets = [
            (await ask(client, ALICE, STAGE, ONE)).read(StageReply).offset
            for _ in range(2)
        ]

        async def commit(who: str, batch_id: int, staged: list[int]) -> int:
            body = json.dumps({"staged": {"broker-0": staged}}).encode()
            header = CommitBatch(producer_id="sink", batch_id=batch_id)
            return (await ask(client, who, header, body)).code

        refused = ResponseCode.NO_PERMISSION
        assert await commit(NOBODY, 0, offsets) == refused
        assert await commit(ROOT, 0, offsets) == refused
        assert await commit(ALICE, 0, offsets[:1]) == ResponseCode.SUCCESS
        assert await commit(NOBODY, 99, []) == refused
        last = await ask(client, NOBODY, LastBatch(producer_id="sink"))
        assert last.code == refused
        assert await commit(ALICE, 1, offsets[1:]) == ResponseCode.SUCCESS
        found = (await ask(client, ROOT, pulling("orders"))).messages()
        assert [one.body for one in found] == [b"before", b"a", b"a"]
