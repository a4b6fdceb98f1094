"""What gRPC clients cannot handle of a migration's source is a dead letter there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.gateway.grpc.protocol import (
    ChangeInvisibleDurationRequest,
    Code,
    Duration,
    ForwardMessageToDeadLetterQueueRequest,
    Resource,
)
from tests.gateway.processors.test_at_source import THERE, consuming, receive, send
from tests.remoting import looped

if TYPE_CHECKING:
    from pathlib import Path


@looped
async def test_what_is_refused_comes_again_from_the_source_and_dies_there(
    tmp_path: Path,
):
    async with consuming(tmp_path) as (source, _, client):
        await send(client, "bad")
        (one,) = await receive(client, THERE)
        changed = await client.call(
            "ChangeInvisibleDuration",
            ChangeInvisibleDurationRequest(
                topic=Resource(name="orders"),
                group=Resource(name="readers"),
                receipt_handle=one.system_properties.receipt_handle,
                invisible_duration=Duration(nanos=10_000_000),
            ),
        )
        assert changed.status.code == Code.OK
        again = []
        while not again:
            again = await receive(client, THERE)
        assert again[0].system_properties.delivery_attempt == 2
        buried = await client.call(
            "ForwardMessageToDeadLetterQueue",
            ForwardMessageToDeadLetterQueueRequest(
                topic=Resource(name="orders"),
                group=Resource(name="readers"),
                receipt_handle=again[0].system_properties.receipt_handle,
                message_id=again[0].system_properties.message_id,
            ),
        )
        assert buried.status.code == Code.OK, buried.status
        dead = source.node.topics.get("%DLQ%readers")
        assert [one.next_offset for one in dead.partitions] == [1]
        assert await receive(client, THERE) == []
