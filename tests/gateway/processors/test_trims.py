"""Topics are trimmed over the wire, and what is gone is not pulled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from ropeway.gateway.wire.codes import ResponseCode
from ropeway.gateway.wire.commands.trims import QueueTrimmed, TopicTrimmed, TrimTopic
from tests.remoting import looped, running
from tests.requests import pulling, sending

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = "orders"


@looped
async def test_a_pull_from_below_is_sent_to_the_oldest_that_is_left(tmp_path: Path):
    async with running(tmp_path) as (_, client):
        for _ in range(3):
            assert (await client.ask(sending(TOPIC), b"x")).code == 0
        asked = TrimTopic(topic=TOPIC, timestamp=0, queue_id=0, offset=2)
        reply = await client.ask(asked)
        assert reply.code == 0, reply.remark
        found = msgspec.json.decode(reply.body, type=TopicTrimmed)
        assert found == TopicTrimmed("broker-0", [QueueTrimmed(0, 0, 2)])
        refused = await client.ask(pulling(TOPIC, offset=0))
        assert refused.code == ResponseCode.PULL_OFFSET_MOVED
        assert refused.fields["minOffset"] == "2"
        assert (await client.ask(pulling(TOPIC, offset=2))).code == 0


@pytest.mark.parametrize(
    ("asked", "code", "remark"),
    [
        (TrimTopic("nosuch", -1), ResponseCode.TOPIC_NOT_EXIST, "not exist"),
        (TrimTopic(TOPIC, -1, offset=1), ResponseCode.INVALID_PARAMETER, "one queue's"),
        (TrimTopic(TOPIC, -1, 99), ResponseCode.INVALID_PARAMETER, "no queue 99"),
        (TrimTopic("TBW102", -1), ResponseCode.INVALID_PARAMETER, "broker's own"),
    ],
)
@looped
async def test_what_cannot_be_is_refused(tmp_path: Path, asked, code, remark):
    async with running(tmp_path) as (_, client):
        assert (await client.ask(sending(TOPIC), b"x")).code == 0
        reply = await client.ask(asked)
        assert reply.code == code
        assert remark in reply.remark
