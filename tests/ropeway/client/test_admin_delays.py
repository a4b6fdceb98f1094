"""Messages that wait at delay levels, as an administrator's client lists them."""

from __future__ import annotations

import time

from ropeway.client import Admin, Message, Producer, admin_delays
from tests.remoting import looped
from tests.ropeway.client.scenario import PATIENT, eventually

HOUR_MS = 3_600_000


@looped
async def test_each_waits_until_its_levels_time(ropeway_gateway, ropeway_topic):
    where = ropeway_gateway.name_server
    async with Admin(where, config=PATIENT) as admin, Producer(where, "p") as producer:
        await admin.create_topic(ropeway_topic, 1)
        before_ms = time.time_ns() // 1_000_000
        for level in (18, 17):
            await producer.send(Message(ropeway_topic, b"x", delay_level=level))
        found = await eventually(
            lambda: admin_delays.delayed(admin, ropeway_topic),
            lambda found: len(found) == 2,
        )
        assert [one.level for one in found] == [17, 18]
        for one, hours in zip(found, (1, 2), strict=True):
            assert one.topic == ropeway_topic
            assert one.deliver_ms >= before_ms + hours * HOUR_MS
        assert await admin_delays.delayed(admin, "nosuch") == []
