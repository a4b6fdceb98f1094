"""What consumers and readers ask about queues, for their group."""

import time

import pytest

from ropeway.client import PullConsumer
from ropeway.client.bulk import BulkReader
from tests.ropeway.client.scenario import (
    PATIENT_CONSUMER,
    eventually,
    numbered,
    scenario,
    send_all,
)


@pytest.mark.parametrize("kind", [PullConsumer, BulkReader])
@scenario
async def test_a_queues_ends_and_the_groups_place_are_told(
    name_server, topic, group, kind
):
    now_ms = int(time.time() * 1000)
    await send_all(name_server, topic, numbered(8))
    async with kind(name_server, group, config=PATIENT_CONSUMER) as client:
        queues = await client.queues(topic)

        async def ends() -> list[int]:
            return [await client.end_offset(queue) for queue in queues]

        found = await eventually(ends, lambda ends: sum(ends) == 8)
        for queue, end in zip(queues, found, strict=True):
            assert await client.begin_offset(queue) == 0
            assert await client.offset_for_timestamp(queue, now_ms - 60_000) == 0
            assert await client.offset_for_timestamp(queue, now_ms + 60_000) == end
            # Brokers tell a group that begins a queue whose first message is there.
            assert await client.committed(queue) == 0
