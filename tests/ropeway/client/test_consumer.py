"""Push consumers: handlers, groups, offsets, and their end."""

import asyncio
import threading
import time

import msgspec
import pytest

from ropeway.client import (
    RETRY,
    ClientClosedError,
    ConnectionFailedError,
    ConsumeFrom,
    Message,
    Producer,
    PullConsumer,
)
from ropeway.client.config import ConsumerConfig
from tests.ropeway.client.scenario import (
    CONSUMER,
    PATIENCE,
    PATIENT_CONSUMER,
    PRODUCER,
    Inbox,
    consumer,
    eventually,
    numbered,
    scenario,
    send_all,
    shown,
    until,
)


@scenario
async def test_what_was_handled_does_not_come_again(name_server, topic, group):
    await send_all(name_server, topic, numbered(20))
    first, second = Inbox(), Inbox()
    async with consumer_of(name_server, group, topic, first):
        await first.wait_for(*numbered(20))
    await send_all(name_server, topic, [b"new"])
    async with consumer_of(name_server, group, topic, second):
        await second.wait_for(b"new")
    assert second.bodies == [b"new"]


def consumer_of(name_server, group, topic, handler, expression="*", **options):
    made = consumer(name_server, group, **options)
    made.subscribe(topic, expression, handler)
    return made


@scenario
async def test_only_wanted_tags_come(name_server, topic, group):
    inbox = Inbox()
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        for tag in ("A", "B", None, "C", "Aa", "BB"):
            await sender.send(Message(topic, str(tag).encode(), tags=tag))
        await sender.send(Message(topic, b"end", tags="A"))
        # "Aa" and "BB" have one hash code, so the broker alone cannot tell them.
        async with consumer_of(name_server, group, topic, inbox, "A || Aa"):
            await inbox.wait_for(b"A", b"Aa", b"end")
    assert sorted(inbox.bodies) == [b"A", b"Aa", b"end"]


@scenario
async def test_synchronous_handlers_run_in_threads(name_server, topic, group):
    await send_all(name_server, topic, numbered(10))
    threads: dict[bytes, int] = {}

    def handler(message):
        threads[message.body] = threading.get_ident()

    async with consumer_of(name_server, group, topic, handler):
        await until(lambda: len(threads) == 10)
    assert threading.get_ident() not in threads.values()


@scenario
async def test_a_batch_handler_gets_lists(name_server, topic, group):
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        await sender.send_batch([Message(topic, body) for body in numbered(10)])
    await shown(name_server, topic, 10)
    batches = []

    async def handler(messages):
        batches.append([message.body for message in messages])

    made = consumer(name_server, group)
    made.subscribe(topic, "*", handler, batch_size=4)
    async with made:
        await until(lambda: sum(map(len, batches)) == 10)
    assert [len(batch) for batch in batches] == [4, 4, 2]


@scenario
async def test_handlers_run_at_the_same_time_up_to_the_limit(name_server, topic, group):
    await send_all(name_server, topic, numbered(12))
    running = most = done = 0

    async def handler(_):
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        # Whoever comes early waits for as many as may be.
        await until(lambda: most == 3)
        await asyncio.sleep(0.02)
        running -= 1
        done += 1

    async with consumer_of(name_server, group, topic, handler, concurrency=3):
        await until(lambda: done == 12)
    assert most == 3


@scenario
async def test_an_unfinished_message_holds_the_offset_back(name_server, topic, group):
    async with Producer(name_server, "p", config=PRODUCER) as sender:
        queue = (await sender.send(Message(topic, b"m0"))).queue
        for body in numbered(5)[1:]:
            await sender.send(Message(topic, body), queue=queue)
    handled = Inbox()

    async def stuck_on_m1(message):
        if message.body == b"m1":
            await asyncio.Event().wait()
        await handled(message)

    config = msgspec.structs.replace(CONSUMER, close_timeout_s=0.2)
    async with (
        consumer_of(name_server, group, topic, stuck_on_m1, config=config),
        PullConsumer(name_server, group, config=PATIENT_CONSUMER) as looking,
    ):
        await handled.wait_for(b"m0", b"m2", b"m3", b"m4")
        # Not at the close alone, whose time may be too short on a busy machine.
        await eventually(lambda: looking.committed(queue), lambda offset: offset == 1)
    again = Inbox()
    async with consumer_of(name_server, group, topic, again):
        await again.wait_for(b"m1", b"m2", b"m3", b"m4")
    assert b"m0" not in again.bodies


@scenario
async def test_close_waits_for_running_handlers_and_notes_what_they_did(
    name_server, topic, group
):
    await send_all(name_server, topic, numbered(1))
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_):
        entered.set()
        await leave.wait()

    reader = consumer_of(name_server, group, topic, slow)
    await reader.start()
    await entered.wait()
    closing = asyncio.create_task(reader.close())
    await asyncio.sleep(0)
    leave.set()
    await closing
    async with PullConsumer(name_server, group, config=PATIENT_CONSUMER) as looking:
        committed = [await looking.committed(q) for q in await looking.queues(topic)]
        assert sum(filter(None, committed)) == 1


STUCK_S = 60


@scenario
async def test_close_while_busy_does_not_hang(name_server, topic, group):
    await send_all(name_server, topic, numbered(100))
    handled = Inbox()
    stuck = threading.Event()

    def blocks(_):
        stuck.wait(STUCK_S)

    async def never_ends(message):
        await handled(message)
        await asyncio.Event().wait()

    config = ConsumerConfig(**PATIENCE, close_timeout_s=0.2)
    for handler in (never_ends, blocks):
        reader = consumer_of(name_server, group, topic, handler, config=config)
        await reader.start()
        await until(lambda: handled.bodies != [])
        began = time.monotonic()
        await reader.close()
        # Less than a handler takes.
        assert time.monotonic() - began < STUCK_S
    stuck.set()


@scenario
async def test_a_new_group_starts_where_it_is_told(name_server, topic, new_name):
    await send_all(name_server, topic, [b"old"] * 8)
    await asyncio.sleep(0.05)
    middle_ms = int(time.time() * 1000)
    await asyncio.sleep(0.05)
    await send_all(name_server, topic, numbered(8))
    inbox = Inbox()
    options = {"consume_from": ConsumeFrom.TIMESTAMP, "consume_from_ms": middle_ms}
    async with consumer_of(name_server, new_name("group"), topic, inbox, **options):
        await inbox.wait_for(*numbered(8))
    # Where a queue starts at offset 0 brokers themselves say 0 to a new group.
    assert sorted(set(inbox.bodies) - {b"old"}) == sorted(numbered(8))


@scenario
async def test_broadcasting_gives_everything_to_everyone_and_remembers(
    name_server, topic, group, tmp_path
):
    await send_all(name_server, topic, numbered(10))
    config = ConsumerConfig(**PATIENCE, offset_dir=tmp_path, commit_interval_s=0.1)

    def member(inbox, instance):
        return consumer_of(
            name_server,
            group,
            topic,
            inbox,
            broadcasting=True,
            instance=instance,
            config=config,
        )

    inboxes = [Inbox(), Inbox()]
    async with member(inboxes[0], "one"), member(inboxes[1], "two"):
        for inbox in inboxes:
            await inbox.wait_for(*numbered(10))
    again = Inbox()
    async with member(again, "one"):
        await send_all(name_server, topic, [b"new"])
        await again.wait_for(b"new")
    assert again.bodies == [b"new"]


@scenario
async def test_a_failed_broadcast_message_does_not_come_again(
    name_server, topic, group, tmp_path
):
    await send_all(name_server, topic, numbered(3))
    inbox = Inbox()

    async def fails(message):
        await inbox(message)
        return RETRY

    config = ConsumerConfig(**PATIENCE, offset_dir=tmp_path)
    reader = consumer_of(
        name_server, group, topic, fails, broadcasting=True, config=config
    )
    async with reader:
        await inbox.wait_for(*numbered(3))
    async with consumer_of(
        name_server, group, topic, inbox, broadcasting=True, config=config
    ):
        await send_all(name_server, topic, [b"new"])
        await inbox.wait_for(b"new")
    assert len(inbox.bodies) == 4


@scenario
async def test_flow_control_bounds_what_is_cached(name_server, topic, group):
    await send_all(name_server, topic, numbered(60))
    gate = asyncio.Event()
    inbox = Inbox()

    async def waits(message):
        await gate.wait()
        await inbox(message)

    config = ConsumerConfig(**PATIENCE, max_cached_messages=3, pull_batch=2)
    async with consumer_of(
        name_server, group, topic, waits, concurrency=1, config=config
    ) as reader:
        held = reader._reader.queues
        await until(lambda: any(len(one.messages) > 3 for one in held.values()))
        gate.set()
        await inbox.wait_for(*numbered(60))
        assert all(len(one.messages) <= 3 + 2 for one in held.values())


@scenario
async def test_a_consumer_without_a_name_server_does_not_start():
    reader = consumer("127.0.0.1:1", "g")
    reader.subscribe("t", "*", Inbox())
    with pytest.raises(ConnectionFailedError):
        await reader.start()


@scenario
async def test_subscribing_comes_before_starting(name_server, topic, group):
    async with consumer_of(name_server, group, topic, Inbox()) as reader:
        with pytest.raises(ClientClosedError, match="subscribe before"):
            reader.subscribe("other", "*", Inbox())
        with pytest.raises(ClientClosedError, match="starts once"):
            await reader.start()


@scenario
async def test_a_consumer_goes_on_while_the_name_server_is_down(
    own_server, topic, group
):
    """Here name server and broker fall together, so this also pins reconnecting."""
    await send_all(own_server.name_server, topic, [b"before"])
    inbox = Inbox()
    async with consumer_of(
        own_server.name_server, group, topic, inbox, config=CONSUMER
    ):
        await inbox.wait_for(b"before")
        await asyncio.to_thread(own_server.stop)
        await asyncio.to_thread(own_server.start)
        await send_all(own_server.name_server, topic, numbered(10))
        await inbox.wait_for(*numbered(10))
