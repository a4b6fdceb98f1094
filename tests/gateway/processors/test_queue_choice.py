"""Which queue a message goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.send import SendReply
from ropeway.routing.api import Topic
from tests.gateway.lite.rig import put_topic
from tests.remoting import looped, running
from tests.requests import sending

if TYPE_CHECKING:
    from pathlib import Path

PRIORITY = "_SYS_MSG_PRIORITY_"


@looped
@pytest.mark.parametrize(
    ("pairs", "queue_id"),
    [
        ({PRIORITY: "0"}, 0),
        ({PRIORITY: "2"}, 2),
        ({PRIORITY: "3"}, 2),
        ({PRIORITY: "9" * 30}, 2),
        # Those are of other types, or of none.
        ({PRIORITY: "2", "__SHARDINGKEY": "g"}, 1),
        ({PRIORITY: "-1"}, 1),
        ({PRIORITY: "high"}, 1),
        ({}, 1),
    ],
)
async def test_a_priority_is_a_queue(
    tmp_path: Path, pairs: dict[str, str], queue_id: int
):
    async with running(tmp_path) as (app, client):
        await app.node.topics.put(
            Topic(
                name="urgent",
                read_queue_nums=3,
                write_queue_nums=3,
                attributes={"message.type": "PRIORITY"},
            )
        )
        answer = await client.ask(sending("urgent", queue_id=1, pairs=pairs), b"x")
        assert answer.read(SendReply).queue_id == queue_id
        await app.node.topics.put(
            Topic(name="plain", read_queue_nums=3, write_queue_nums=3)
        )
        answer = await client.ask(sending("plain", queue_id=1, pairs=pairs), b"x")
        assert answer.read(SendReply).queue_id == 1


@looped
async def test_a_lite_topic_has_one_queue_whatever_the_client_has_chosen(
    tmp_path: Path,
):
    async with running(tmp_path) as (app, client):
        await put_topic(app, "rooms")
        chosen = set()
        for queue_id in (-1, 0, 1, 2, 3):
            asked = sending("rooms", queue_id=queue_id, pairs={"__LITE_TOPIC": "a"})
            answer = await client.ask(asked, b"x")
            chosen.add(answer.read(SendReply).queue_id)
        assert len(chosen) == 1
        for wrong in ("a b", "x" * 65, ""):
            asked = sending("rooms", pairs={"__LITE_TOPIC": wrong})
            answer = await client.ask(asked, b"x")
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            assert answer.remark is not None
            assert "lite topic" in answer.remark
