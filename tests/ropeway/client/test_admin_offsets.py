"""Moving groups, and seeing how far they have come."""

import time

import pytest

from ropeway.client import Admin, PullConsumer, ResponseError, admin_offsets
from ropeway.client.admin_offsets import LATEST_MS
from ropeway.client.errors import AdminError
from tests.ropeway.client.scenario import (
    PATIENT,
    PATIENT_CONSUMER,
    numbered,
    scenario,
    send_all,
)


async def consumed(name_server: str, topic: str, group: str, count: int) -> None:
    """A group that has read so many of the topic's messages."""
    async with Admin(name_server, config=PATIENT) as admin:
        await admin.create_topic(topic, 1)
    await send_all(name_server, topic, numbered(5))
    async with PullConsumer(name_server, group, config=PATIENT_CONSUMER) as reader:
        (queue,) = await reader.queues(topic)
        await reader.assign([queue])
        await reader.seek(queue, 0)
        got = 0
        while got < count:
            got += len(await reader.poll(10, count - got))


@scenario
async def test_a_group_is_moved_to_both_ends_a_time_and_an_offset(
    ropeway_gateway, topic, group
):
    name_server = ropeway_gateway.name_server
    await consumed(name_server, topic, group, 2)
    async with Admin(name_server, config=PATIENT) as admin:
        (lag,) = await admin_offsets.progress(admin, group, topic)
        assert (lag.committed, lag.end, lag.lag) == (2, 5, 3)
        assert lag.pulled >= 2
        assert abs(lag.done_ms - time.time_ns() // 1_000_000) < 600_000

        async def moved(**to) -> tuple[int, int]:
            (one,) = await admin_offsets.reset(admin, group, topic, **to)
            assert await admin_offsets.committed(admin, group, one.queue) == one.after
            return one.before, one.after

        assert await moved(time_ms=LATEST_MS) == (2, 5)
        assert await moved() == (5, 0)
        assert await moved(queue_id=0, offset=3) == (3 - 3, 3)
        assert await moved(time_ms=lag.done_ms + 86_400_000) == (3, 5)
        assert await moved(queue_id=0, offset=1) == (5, 1)
        # Back only: to a time behind where it is, it does not skip.
        assert await moved(time_ms=LATEST_MS, only_back=True) == (1, 1)


@scenario
async def test_what_cannot_be_moved_is_refused(ropeway_gateway, topic, group):
    name_server = ropeway_gateway.name_server
    await consumed(name_server, topic, group, 1)
    async with Admin(name_server, config=PATIENT) as admin:
        with pytest.raises(AdminError, match="offset 3 without a queue"):
            await admin_offsets.reset(admin, group, topic, offset=3)
        with pytest.raises(AdminError, match="group nobody does not exist"):
            await admin_offsets.reset(admin, "nobody", topic)
        with pytest.raises(ResponseError, match=r"not in consume queue range \[0-5\]"):
            await admin_offsets.reset(admin, group, topic, queue_id=0, offset=9)
        (queue,) = (await admin.route(topic)).read_queues
        assert await admin_offsets.committed(admin, "nobody", queue) is None
