"""Pull consumers."""

import asyncio
import time

import pytest

from ropeway.client import ClientClosedError, ConsumeFrom, MessageQueue, PullConsumer
from tests.ropeway.client.scenario import (
    CONSUMER,
    PATIENT_PRODUCER,
    eventually,
    numbered,
    scenario,
    send_all,
    until,
)


def puller(name_server: str, group: str, **options) -> PullConsumer:
    options.setdefault("consume_from", ConsumeFrom.FIRST_OFFSET)
    return PullConsumer(name_server, group, config=CONSUMER, **options)


async def poll(consumer: PullConsumer, count: int) -> list[bytes]:
    bodies: list[bytes] = []
    while len(bodies) < count:
        bodies += [message.body for message in await consumer.poll(5)]
    return bodies


@scenario
async def test_polling_gives_everything_once(name_server, topic, group):
    await send_all(name_server, topic, numbered(50))
    async with puller(name_server, group) as consumer:
        consumer.subscribe(topic)
        assert sorted(await poll(consumer, 50)) == sorted(numbered(50))
        assert await consumer.poll(0.05) == []
    async with puller(name_server, group) as consumer:
        consumer.subscribe(topic)
        await send_all(name_server, topic, [b"new"])
        assert await poll(consumer, 1) == [b"new"]


@scenario
async def test_a_poll_gives_no_more_than_was_asked_for(name_server, topic, group):
    await send_all(name_server, topic, numbered(5))
    async with puller(name_server, group) as consumer:
        consumer.subscribe(topic)
        got = []
        while len(got) < 5:
            some = await consumer.poll(5, max_messages=2)
            assert 1 <= len(some) <= 2
            got += some


@scenario
async def test_only_what_is_committed_is_done(name_server, topic, group):
    await send_all(name_server, topic, numbered(8))
    async with puller(name_server, group, auto_commit=False) as consumer:
        consumer.subscribe(topic)
        await poll(consumer, 8)
    async with puller(name_server, group, auto_commit=False) as consumer:
        consumer.subscribe(topic)
        await poll(consumer, 8)
        await consumer.commit()
        queues = await consumer.queues(topic)
        assert sum([await consumer.committed(queue) for queue in queues]) == 8
    async with puller(name_server, group, auto_commit=False) as consumer:
        consumer.subscribe(topic)
        await send_all(name_server, topic, [b"new"])
        assert await poll(consumer, 1) == [b"new"]


@scenario
async def test_a_consumer_of_one_queue_can_seek_and_look(name_server, topic, group):
    await send_all(name_server, topic, [b"create"])
    async with puller(name_server, group) as consumer:
        queue = (await consumer.queues(topic))[0]
    await send_to(name_server, queue, numbered(10))
    begin_ms = int(time.time() * 1000)
    async with puller(name_server, group) as consumer:
        begin = await consumer.begin_offset(queue)
        end = await consumer.end_offset(queue)
        await consumer.assign([queue])
        assert set(consumer.assignment) == {queue}
        await consumer.seek(queue, end - 3)
        assert await poll(consumer, 3) == numbered(10)[-3:]
        assert consumer.position(queue) == end
        await consumer.seek(queue, begin)
        assert (await poll(consumer, end - begin))[-10:] == numbered(10)
        assert await consumer.offset_for_timestamp(queue, 0) == begin
        assert await consumer.offset_for_timestamp(queue, begin_ms + 60_000) == end


@scenario
async def test_rebalancing_takes_no_queue_back_that_is_just_sought(
    name_server, topic, group
):
    await send_all(name_server, topic, [b"create"])
    async with puller(name_server, group) as consumer:
        queue = (await consumer.queues(topic))[0]
        await send_to(name_server, queue, numbered(3))
        end = await consumer.end_offset(queue)
        await consumer.assign([queue])
        await consumer.seek(queue, end - 3)
        assert await poll(consumer, 3) == numbered(3)
        rebalances = []
        reader = consumer._reader

        def rebalance(_: asyncio.Task[None]) -> None:
            # In the moment in which the queue is not pulled from.
            rebalances.append(asyncio.ensure_future(reader.rebalancer.rebalance()))

        reader.queues[queue].tasks[0].add_done_callback(rebalance)
        await consumer.seek(queue, end - 3)
        assert await asyncio.gather(*rebalances) == [True]
        assert await poll(consumer, 3) == numbered(3)


async def send_to(name_server: str, queue: MessageQueue, bodies: list[bytes]) -> None:
    from ropeway.client import Message, Producer

    async with Producer(name_server, "p", config=PATIENT_PRODUCER) as producer:
        for body in bodies:
            sent = await producer.send(Message(queue.topic, body), queue=queue)
    async with puller(name_server, "looking") as consumer:
        await eventually(
            lambda: consumer.end_offset(queue), lambda end: end > sent.queue_offset
        )


@scenario
async def test_an_offset_beyond_the_end_is_corrected(name_server, topic, group):
    await send_all(name_server, topic, [b"create"])
    async with puller(name_server, group) as consumer:
        queue = (await consumer.queues(topic))[0]
        await send_to(name_server, queue, numbered(3))
        await consumer.assign([queue])
        await consumer.seek(queue, 1_000_000)
        end = await consumer.end_offset(queue)
        await until(
            lambda: queue in consumer.assignment and consumer.position(queue) == end
        )
        await send_to(name_server, queue, [b"new"])
        assert (await poll(consumer, 1))[-1] == b"new"


@scenario
async def test_two_consumers_share_a_topic(name_server, topic, group):
    await send_all(name_server, topic, numbered(4))
    async with puller(name_server, group) as one, puller(name_server, group) as two:
        one.subscribe(topic)
        two.subscribe(topic)
        everything = set(await one.queues(topic))
        await until(
            lambda: (
                {*one.assignment, *two.assignment} == everything
                and len(one.assignment) == len(two.assignment)
            )
        )
        assert set(one.assignment).isdisjoint(two.assignment)


@scenario
async def test_subscribing_and_assigning_exclude_each_other(name_server, topic, group):
    await send_all(name_server, topic, [b"create"])
    async with puller(name_server, group) as consumer:
        consumer.subscribe(topic)
        with pytest.raises(ValueError, match="topics are subscribed to"):
            await consumer.assign([])
    async with puller(name_server, group) as consumer:
        await consumer.assign([MessageQueue(topic, "nowhere", 0)])
        with pytest.raises(ValueError, match="queues are assigned"):
            consumer.subscribe(topic)
        with pytest.raises(ValueError, match="is not read here"):
            await consumer.seek(MessageQueue(topic, "nowhere", 0), 0)


@scenario
async def test_close_ends_a_poll_and_later_ones_are_refused(name_server, topic, group):
    consumer = puller(name_server, group)
    await consumer.start()
    consumer.subscribe(topic)
    polling = asyncio.create_task(consumer.poll(0.2))
    await consumer.close()
    assert await polling == []
    with pytest.raises(ClientClosedError):
        await consumer.poll()
