"""Orderly consumption."""

import asyncio

from ropeway.client import RETRY, Admin, Message, Producer
from tests.ropeway.client.scenario import (
    PATIENT,
    PRODUCER,
    Inbox,
    consumer,
    numbered,
    scenario,
    until,
)


async def send_in_order(name_server: str, topic: str, count: int) -> None:
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        for body in numbered(count):
            await sender.send(Message(topic, body, sharding_key="k"))


@scenario
async def test_a_failed_message_is_handled_again_before_those_behind_it(
    name_server, topic, group
):
    await send_in_order(name_server, topic, 6)
    inbox = Inbox()

    async def fails_twice(message):
        await inbox(message)
        if message.body == b"m2" and message.reconsume_times < 2:
            raise ValueError(message.body)

    reader = consumer(name_server, group, orderly=True)
    reader.subscribe(topic, "*", fails_twice)
    async with reader:
        await inbox.wait_for(b"m5")
    assert inbox.bodies == [b"m0", b"m1", b"m2", b"m2", b"m2", b"m3", b"m4", b"m5"]
    times = [m.reconsume_times for m in inbox.messages if m.body == b"m2"]
    assert times == [0, 1, 2]


@scenario
async def test_a_message_beyond_its_limit_becomes_a_dead_letter(
    name_server, topic, group
):
    await send_in_order(name_server, topic, 3)
    inbox = Inbox()

    async def fails_on_m1(message):
        await inbox(message)
        return RETRY if message.body == b"m1" else None

    reader = consumer(name_server, group, orderly=True, max_reconsume_times=1)
    reader.subscribe(topic, "*", fails_on_m1)
    dead = Inbox()
    undertaker = consumer(name_server, f"{group}-dead")
    undertaker.subscribe(f"%DLQ%{group}", "*", dead)
    async with reader, undertaker:
        await inbox.wait_for(b"m2")
        await dead.wait_for(b"m1")
    assert inbox.bodies == [b"m0", b"m1", b"m1", b"m2"]
    (letter,) = dead.messages
    assert letter.properties["RETRY_TOPIC"] == topic
    assert letter.msg_id == inbox.messages[1].msg_id


@scenario
async def test_two_consumers_never_handle_one_queue_at_the_same_time(
    name_server, topic, group
):
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        await sender.send(Message(topic, b"first"))
    running: dict[object, int] = {}
    order: dict[object, list[int]] = {}
    clashes = []
    count = 0

    async def handler(message):
        nonlocal count
        queue = message.queue
        running[queue] = running.get(queue, 0) + 1
        if running[queue] > 1:
            clashes.append(queue)
        await asyncio.sleep(0.005)
        running[queue] -= 1
        order.setdefault(queue, []).append(message.queue_offset)
        count += 1

    def member():
        made = consumer(name_server, group, orderly=True)
        made.subscribe(topic, "*", handler)
        return made

    async with Producer(name_server, "p", config=PRODUCER) as sender, member():
        for number, body in enumerate(numbered(120)):
            await sender.send(Message(topic, body, sharding_key=str(number % 8)))
            if number == 40:
                second = member()
                await second.start()
            if number == 80:
                await second.close()
        await until(lambda: count >= 121)
    assert clashes == []
    # A message may come twice when its queue moves, but never out of order.
    for offsets in order.values():
        assert sorted(offsets) == offsets


@scenario
async def test_a_closed_consumers_queues_are_free_at_once(name_server, topic, group):
    await send_in_order(name_server, topic, 3)
    async with Admin(name_server, config=PATIENT) as admin:
        queues = {span.queue for span in await admin.describe_topic(topic)}
    # A lock that was not given back would last for a minute.
    for _ in range(3):
        reader = consumer(name_server, group, orderly=True)
        reader.subscribe(topic, "*", Inbox())
        async with reader:
            await until(lambda held=reader: queues <= set(held.queues))
