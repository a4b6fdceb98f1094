"""The ends and times of queues."""

import time

from ropeway.client import ConsumeFrom
from ropeway.client.instance import Instance
from ropeway.client.queue_bounds import (
    begin_offset,
    end_offset,
    offset_for_timestamp,
    start_offset,
)
from tests.ropeway.client.scenario import (
    PATIENT,
    eventually,
    numbered,
    scenario,
    send_all,
)


@scenario
async def test_bounds_follow_what_is_sent(name_server, topic):
    client = Instance(name_server, PATIENT)
    client.start()
    before_ms = int(time.time() * 1000) - 60_000
    await send_all(name_server, topic, numbered(8))
    queues = (await client.routes.get(topic)).read_queues
    assert [await begin_offset(client, queue) for queue in queues] == [0] * len(queues)

    async def all_ends() -> list[int]:
        return [await end_offset(client, queue) for queue in queues]

    ends = await eventually(all_ends, lambda ends: sum(ends) == 8)
    for queue, end in zip(queues, ends, strict=True):
        assert await offset_for_timestamp(client, queue, before_ms) == 0
        later_ms = int(time.time() * 1000) + 60_000
        assert await offset_for_timestamp(client, queue, later_ms) == end
        assert await start_offset(client, queue, ConsumeFrom.FIRST_OFFSET, 0) == 0
        assert await start_offset(client, queue, ConsumeFrom.LAST_OFFSET, 0) == end
        for time_ms, offset in ((before_ms, 0), (later_ms, end)):
            start = await start_offset(client, queue, ConsumeFrom.TIMESTAMP, time_ms)
            assert start == offset
    await client.close()
