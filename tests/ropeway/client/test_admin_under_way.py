"""What brokers hold that nobody has got yet."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from ropeway.client import Admin, Message, MessageQueue, Producer, admin_inventory
from ropeway.client.admin_under_way import Reading, under_way
from ropeway.client.lags import QueueLag, QueueSpan
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.commands.pop import FROM_EARLIEST, PopMessage
from ropeway.gateway.wire.commands.send import SendMessage
from tests.ropeway.client.scenario import PATIENT, PRODUCER, scenario
from tests.system.rocketmq import RocketMQ

if TYPE_CHECKING:
    from tests.ropeway.client.conftest import Server

LATE_MS = 3_600_000
PREPARED = 4


def half(topic: str) -> SendMessage:
    """A half message that nobody is asked about for an hour."""
    pairs = {
        properties.TRANSACTION_PREPARED: "true",
        properties.PRODUCER_GROUP: topic,
        properties.UNIQ_KEY: topic.upper(),
        properties.CHECK_IMMUNITY_TIME: str(LATE_MS // 1000),
    }
    return SendMessage(
        producer_group=topic,
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=1,
        queue_id=0,
        sys_flag=PREPARED,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=0,
        properties=properties.dump(pairs),
    )


def pop(topic: str) -> PopMessage:
    return PopMessage(
        consumer_group=f"pop-{topic}",
        topic=topic,
        queue_id=-1,
        max_msg_nums=1,
        invisible_time=LATE_MS,
        poll_time=0,
        born_time=time.time_ns() // 1_000_000,
        init_mode=FROM_EARLIEST,
    )


@scenario
async def test_what_waits_is_counted_by_kind(shared_server: Server, topic):
    address = shared_server.name_server
    async with (
        Admin(address, config=PATIENT) as admin,
        Producer(address, topic, config=PRODUCER) as producer,
    ):
        await admin.create_topic(topic, 1)
        await producer.send(Message(topic, b"now"))
        await producer.send(Message(topic, b"level", delay_level=18))
        await producer.send(Message(topic, b"timed", delay_ms=LATE_MS))
        (master,) = await admin.masters()
        await admin.ask(master, half(topic), b"half")
        await admin.ask(master, pop(topic))
        if not isinstance(shared_server, RocketMQ):
            # It is listed once the timer has taken it in, behind the answer.
            while not await admin.waiting(topic):  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(0.01)
        found = await admin_inventory.read(admin)
    kinds = {one.kind: one for one in found.under_way}
    assert kinds["timed"].topics[topic] == 1
    assert kinds["half"].is_bound
    assert kinds["delayed"].messages
    if isinstance(shared_server, RocketMQ):
        assert kinds["popped"].messages
    else:
        assert any("popped" in one for one in found.untold)


@scenario
async def test_retries_and_dead_letters_are_counted_by_their_topics(shared_gateway):
    spans = [
        QueueSpan(MessageQueue("%DLQ%g", "a", 0), 2, 5),
        QueueSpan(MessageQueue("%DLQ%g", "a", 1), 0, 1),
        QueueSpan(MessageQueue("%DLQ%none", "a", 0), 3, 3),
    ]
    for number, begin in enumerate((0, 1, 4, 3)):
        spans.append(QueueSpan(MessageQueue("%RETRY%g", "a", number), begin, 5))
    spans.append(QueueSpan(MessageQueue("orders", "a", 0), 0, 9))
    # Of the last queue nothing was ever committed.
    lags = [
        QueueLag(MessageQueue("%RETRY%g", "a", 0), 4, 5),
        QueueLag(MessageQueue("%RETRY%g", "b", 0), 0, 9),
        QueueLag(MessageQueue("%RETRY%g", "a", 1), 5, 5),
        QueueLag(MessageQueue("%RETRY%g", "a", 2), -1, 5),
    ]
    one = Reading(broker="a", cluster="c", address="", is_ropeway=True, spans=spans)
    async with Admin(shared_gateway.name_server, config=PATIENT) as admin:
        found = await under_way(admin, [one], lags, [])
    kinds = {it.kind: (it.messages, it.topics) for it in found if it.broker}
    assert kinds == {"retry": (4, {"%RETRY%g": 4}), "dead": (4, {"%DLQ%g": 4})}
