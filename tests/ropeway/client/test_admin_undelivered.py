"""What waits for one topic is counted by kind, and nothing of others."""

from __future__ import annotations

import asyncio

from ropeway.client import Admin, Message, Producer, admin_groups, admin_messages
from ropeway.client.admin_undelivered import Undelivered
from ropeway.gateway.wire.commands.send import ConsumerSendMsgBack
from tests.ropeway.client.scenario import PATIENT, PRODUCER, scenario
from tests.ropeway.client.test_admin_under_way import LATE_MS, half


@scenario
async def test_each_kind_is_counted_for_its_topic(name_server, topic):
    group = f"g-{topic}"
    async with (
        Admin(name_server, config=PATIENT) as admin,
        Producer(name_server, f"p-{topic}", config=PRODUCER) as producer,
    ):
        for name in (topic, f"{topic}-other"):
            await admin.create_topic(name, 1)
            await producer.send(Message(name, b"now"))
            await producer.send(Message(name, b"level", delay_level=18))
            await producer.send(Message(name, b"timed", delay_ms=LATE_MS))
        (master,) = await admin.masters()
        await admin.ask(master, half(topic), b"half")
        await admin_groups.create(admin, group, {})
        (queue,) = (await admin.route(topic)).read_queues
        async for message in admin_messages.read(admin, queue, 0):
            # It comes again after a second, to its group's topic of retries.
            back = ConsumerSendMsgBack(
                offset=message.message_id,
                group=group,
                delay_level=1,
                origin_msg_id=message.msg_id,
                origin_topic=topic,
            )
            await admin.ask(master, back)
        found = Undelivered(admin)
        broker = queue.broker_name

        async def counts() -> list[int]:
            return [
                await found.delayed(topic, broker),
                await found.timed(topic, [broker]),
                await found.half(topic, [broker]),
                await found.retries(topic, broker, group),
            ]

        while await counts() != [1, 1, 1, 1]:  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.05)
        assert await found.retries(topic, broker, f"{group}-other") == 0
        assert await found.half(f"{topic}-other", [broker]) == 0
