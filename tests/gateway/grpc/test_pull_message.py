"""Consumers that keep their own place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropeway.gateway.grpc.protocol import (
    Code,
    GetOffsetRequest,
    MessageQueue,
    PullMessageRequest,
    QueryOffsetPolicy,
    QueryOffsetRequest,
    Resource,
    Timestamp,
    UpdateOffsetRequest,
)
from tests.gateway.grpc.thin import consuming
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path

GROUP = Resource(name="readers")


def queue(queue_id: int = 0) -> MessageQueue:
    return MessageQueue(topic=Resource(name="orders"), id=queue_id)


def pull(offset: int, **more: Any) -> PullMessageRequest:
    return PullMessageRequest(
        group=GROUP, message_queue=queue(), offset=offset, batch_size=2, **more
    )


@looped
async def test_a_queue_is_read_from_any_offset(tmp_path: Path):
    async with consuming(tmp_path) as (_, client):
        for number in range(3):
            await client.send("orders", b"%d" % number)
        status, one, two, after = await client.stream("PullMessage", pull(1))
        assert status.status.code == Code.OK
        assert [one.message.body, two.message.body] == [b"1", b"2"]
        assert after.next_offset == 3
        status, after = await client.stream("PullMessage", pull(3))
        assert (status.status.code, after.next_offset) == (Code.MESSAGE_NOT_FOUND, 3)
        status, _ = await client.stream("PullMessage", pull(9))
        assert status.status.code == Code.ILLEGAL_OFFSET


@looped
async def test_a_group_has_a_place_in_each_queue(tmp_path: Path):
    async with consuming(tmp_path) as (_, client):
        await client.send("orders")
        asked = GetOffsetRequest(group=GROUP, message_queue=queue())
        said = UpdateOffsetRequest(group=GROUP, message_queue=queue(), offset=1)
        unknown = await client.call("GetOffset", asked)
        assert unknown.status.code == Code.OFFSET_NOT_FOUND
        assert (await client.call("UpdateOffset", said)).status.code == Code.OK
        known = await client.call("GetOffset", asked)
        assert (known.status.code, known.offset) == (Code.OK, 1)
        said.offset = -1
        wrong = await client.call("UpdateOffset", said)
        assert wrong.status.code == Code.ILLEGAL_OFFSET


@looped
async def test_a_queue_tells_its_ends_and_its_times(tmp_path: Path):
    async with consuming(tmp_path) as (_, client):
        await client.send("orders")
        await client.send("orders")

        async def offset(policy: QueryOffsetPolicy, **more: Any) -> tuple[Code, int]:
            request = QueryOffsetRequest(
                message_queue=queue(), query_offset_policy=policy, **more
            )
            answer = await client.call("QueryOffset", request)
            return answer.status.code, answer.offset

        assert await offset(QueryOffsetPolicy.BEGINNING) == (Code.OK, 0)
        assert await offset(QueryOffsetPolicy.END) == (Code.OK, 2)
        past = Timestamp(seconds=1)
        by_time = QueryOffsetPolicy.TIMESTAMP
        assert await offset(by_time, timestamp=past) == (Code.OK, 0)
        assert await offset(by_time) == (Code.BAD_REQUEST, 0)
