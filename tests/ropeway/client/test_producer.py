"""Sending: where messages go, and what happens when they cannot."""

import asyncio
import zlib

import pytest

from ropeway.client import (
    ClientClosedError,
    ConnectionFailedError,
    Message,
    Producer,
    ProducerConfig,
    ResponseError,
    SendStatus,
    TopicNotFoundError,
)
from ropeway.gateway.wire import properties
from ropeway.gateway.wire.codes import RequestCode, ResponseCode
from tests.ropeway.client.fake_server import STORED, Answer, FakeServer
from tests.ropeway.client.scenario import (
    PATIENCE,
    PRODUCER,
    Inbox,
    consumer,
    numbered,
    scenario,
    shown,
    until,
)


def producer(name_server: str) -> Producer:
    return Producer(name_server, "senders", config=PRODUCER)


@scenario
async def test_a_message_arrives_as_it_was_sent(name_server, topic, group):
    sent = Message(
        topic,
        b"body",
        tags="A",
        keys=("k1", "k2"),
        properties={"colour": "red"},
        flag=7,
    )
    inbox = Inbox()
    reader = consumer(name_server, group)
    reader.subscribe(topic, "*", inbox)
    async with Producer(name_server, "senders", config=PRODUCER) as sender:
        result = await sender.send(sent)
        async with reader:
            await inbox.wait_for(b"body")
    (message,) = inbox.messages
    assert result.status is SendStatus.SEND_OK
    assert (message.msg_id, message.offset_msg_id) == (
        result.msg_id,
        result.offset_msg_id,
    )
    assert (message.queue, message.queue_offset) == (result.queue, result.queue_offset)
    assert (message.topic, message.tags, message.keys) == (topic, "A", ("k1", "k2"))
    assert (message.properties["colour"], message.flag) == ("red", 7)
    assert message.reconsume_times == 0


@scenario
async def test_long_bodies_are_compressed_on_the_way_and_whole_at_the_end(
    name_server, topic, group
):
    bodies = [b"a" * 4096, b"a" * 4097, bytes(range(256)) * 4096 * 3]
    inbox = Inbox()
    reader = consumer(name_server, group)
    reader.subscribe(topic, "*", inbox)
    async with Producer(name_server, "senders", config=PRODUCER) as sender:
        for body in bodies:
            await sender.send(Message(topic, body))
        async with reader:
            await inbox.wait_for(*bodies)
    flags = {len(message.body): message.sys_flag & 0x701 for message in inbox.messages}
    assert flags == {4096: 0, 4097: 0x301, len(bodies[2]): 0x301}


@scenario
async def test_one_way_messages_arrive(name_server, topic, group):
    inbox = Inbox()
    reader = consumer(name_server, group)
    reader.subscribe(topic, "*", inbox)
    async with Producer(name_server, "senders", config=PRODUCER) as sender:
        for body in numbered(5):
            await sender.send_one_way(Message(topic, body))
        await sender.send(Message(topic, b"last"))
        async with reader:
            await inbox.wait_for(*numbered(5), b"last")


@scenario
async def test_a_batch_lies_together_in_one_queue(name_server, topic, group):
    inbox = Inbox()
    reader = consumer(name_server, group, orderly=True)
    reader.subscribe(topic, "*", inbox)
    async with Producer(name_server, "senders", config=PRODUCER) as sender:
        results = await sender.send_batch(
            [Message(topic, body, tags="T") for body in numbered(4)]
        )
        async with reader:
            await inbox.wait_for(*numbered(4))
    assert inbox.bodies == numbered(4)
    assert [r.queue_offset for r in results] == [0, 1, 2, 3]
    assert len({r.queue for r in results}) == 1
    got = [(m.msg_id, m.offset_msg_id) for m in inbox.messages]
    assert got == [(r.msg_id, r.offset_msg_id) for r in results]


@scenario
async def test_a_sharding_key_keeps_its_messages_in_order(name_server, topic, group):
    inbox = Inbox()
    reader = consumer(name_server, group, orderly=True)
    reader.subscribe(topic, "*", inbox)
    async with Producer(name_server, "senders", config=PRODUCER) as sender:
        for number in range(20):
            for key in "ab":
                body = f"{key}{number}".encode()
                await sender.send(Message(topic, body, sharding_key=key))
        async with reader:
            await inbox.wait_for(*numbered(20, "a"), *numbered(20, "b"))
    for key in "ab":
        mine = [m for m in inbox.messages if m.body.startswith(key.encode())]
        assert [m.body for m in mine] == numbered(20, key)
        assert len({m.queue for m in mine}) == 1


@scenario
async def test_a_selector_and_a_queue_say_where_a_message_goes(name_server, topic):
    async with Producer(name_server, "senders", config=PRODUCER) as sender:
        await sender.send(Message(topic, b"x"))
        last = (await sender.queues(topic))[-1]
        chosen = await sender.send(
            Message(topic, b"x"), selector=lambda queues, _: queues[-1]
        )
        named = await sender.send(Message(topic, b"x"), queue=last)
        assert chosen.queue == named.queue == last


@scenario
async def test_sends_at_the_same_time_are_all_stored(name_server, topic):
    async with Producer(name_server, "senders", config=PRODUCER) as sender:
        await sender.send(Message(topic, b"first"))
        results = await asyncio.gather(
            *(sender.send(Message(topic, body)) for body in numbered(200))
        )
        assert len({result.msg_id for result in results}) == 200
        assert await shown(name_server, topic, 201) == 201


@scenario
async def test_a_delayed_message_comes_after_its_delay(name_server, topic, group):
    inbox = Inbox()
    reader = consumer(name_server, group)
    reader.subscribe(topic, "*", inbox)
    async with Producer(name_server, "senders", config=PRODUCER) as sender, reader:
        await sender.send(Message(topic, b"later", delay_level=1))
        await inbox.wait_for(b"later")
    (late,) = inbox.messages
    assert late.store_ms - late.born_ms >= 1000


@pytest.mark.parametrize("end", ["stop", "kill"])
@scenario
async def test_what_was_acknowledged_arrives_in_order_over_a_restart_and_a_kill(
    own_server, topic, group, end
):
    """A kill in the mode in which an acknowledgement means that the disk has it."""
    stored: list[bytes] = []
    stop = asyncio.Event()
    inbox = Inbox()
    reader = consumer(own_server.name_server, group, orderly=True)
    reader.subscribe(topic, "*", inbox)

    async def produce(sender: Producer) -> None:
        while not stop.is_set():
            body = b"m%d" % len(stored)
            try:
                await sender.send(Message(topic, body, sharding_key="k"))
            except (ConnectionFailedError, ResponseError, TopicNotFoundError):
                # A broker in Java is away for seconds, which are not all for us.
                await asyncio.sleep(0.02)
            else:
                stored.append(body)

    async with producer(own_server.name_server) as sender:
        await sender.send(Message(topic, b"first", sharding_key="k"))
        async with reader, asyncio.TaskGroup() as tasks:
            producing = tasks.create_task(produce(sender))
            await until(lambda: len(stored) > 50)
            await asyncio.to_thread(getattr(own_server, end))
            await asyncio.to_thread(own_server.start)
            before = len(stored)
            await until(lambda: len(stored) > before + 50)
            stop.set()
            await producing
            await inbox.wait_for(b"first", *stored)
    # What was sent or handed out twice stands behind its first time.
    first_times = [one for one in dict.fromkeys(inbox.bodies) if one in set(stored)]
    assert first_times == stored


@scenario
async def test_a_busy_brokers_message_goes_to_another_queue():
    tried: list[str] = []

    async with FakeServer() as server, producer(server.address) as sender:

        def busy_once(request):
            tried.append(request.fields["e"])
            return STORED if len(tried) > 1 else Answer(ResponseCode.SYSTEM_BUSY)

        server.behaviours[RequestCode.SEND_MESSAGE_V2] = busy_once
        result = await sender.send(Message("t", b"x"))
        assert result.queue_offset == 7
        assert len(tried) == len(set(tried)) == 2
        keys = {
            properties.parse(request.fields["i"])[properties.UNIQ_KEY]
            for request in server.asked(RequestCode.SEND_MESSAGE_V2)
        }
        assert keys == {result.msg_id}


@pytest.mark.parametrize(
    ("code", "message", "attempts"),
    [
        (ResponseCode.SYSTEM_BUSY, Message("t", b"x"), 3),
        (ResponseCode.SYSTEM_BUSY, Message("t", b"x", sharding_key="k"), 1),
        (ResponseCode.MESSAGE_ILLEGAL, Message("t", b"x"), 1),
    ],
)
def test_only_what_is_safe_is_tried_again(code, message, attempts):
    @scenario
    async def check() -> None:
        async with FakeServer() as server, producer(server.address) as sender:
            server.behaviours[RequestCode.SEND_MESSAGE_V2] = lambda _: Answer(code)
            with pytest.raises(ResponseError, match=code.name):
                await sender.send(message)
            assert len(server.asked(RequestCode.SEND_MESSAGE_V2)) == attempts

    check()


@scenario
async def test_all_tries_together_keep_to_the_time():
    async with FakeServer() as server, producer(server.address) as sender:
        server.behaviours[RequestCode.SEND_MESSAGE_V2] = lambda _: None
        began = asyncio.get_running_loop().time()
        with pytest.raises(ConnectionFailedError):
            await sender.send(Message("t", b"x"), timeout_s=0.2)
        assert asyncio.get_running_loop().time() - began < PATIENCE["request_timeout_s"]
        assert len(server.asked(RequestCode.SEND_MESSAGE_V2)) == 1


@scenario
async def test_all_sends_of_a_producer_keep_to_the_time_of_its_configuration():
    config = ProducerConfig(**PATIENCE, send_timeout_s=0.2)
    message = Message("t", b"x")
    async with (
        FakeServer() as server,
        Producer(server.address, "p", config=config) as sender,
    ):
        for code in (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE):
            server.behaviours[code] = lambda _: None
        began = asyncio.get_running_loop().time()
        for send in (sender.send(message), sender.send_batch([message])):
            with pytest.raises(ConnectionFailedError):
                await send
        assert asyncio.get_running_loop().time() - began < PATIENCE["request_timeout_s"]


@scenario
async def test_messages_stored_but_not_flushed_say_so():
    async with FakeServer() as server, producer(server.address) as sender:
        answer = STORED._replace(code=ResponseCode.FLUSH_DISK_TIMEOUT)
        server.behaviours[RequestCode.SEND_MESSAGE_V2] = lambda _: answer
        result = await sender.send(Message("t", b"x"))
        assert result.status is SendStatus.FLUSH_DISK_TIMEOUT


@scenario
async def test_close_ends_sends_under_way():
    async with FakeServer() as server:
        server.behaviours[RequestCode.SEND_MESSAGE_V2] = lambda _: None
        sender = producer(server.address)
        await sender.start()
        sends = [asyncio.create_task(sender.send(Message("t", b"x"))) for _ in range(5)]
        await until(lambda: len(server.asked(RequestCode.SEND_MESSAGE_V2)) == 5)
        await sender.close()
        outcomes = await asyncio.gather(*sends, return_exceptions=True)
        kinds = {type(outcome) for outcome in outcomes}
        assert kinds <= {ConnectionFailedError, ClientClosedError}
        with pytest.raises(ClientClosedError):
            await sender.send(Message("t", b"x"))


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (Message("", b"x"), "topic of 0 letters; allowed: 1 to 255"),
        (Message("t", b""), "body of 0 bytes; allowed: 1 to 4194304"),
        (Message("t", b"x" * 4194305), "body of 4194305 bytes"),
        (Message("t", b"x", delay_level=19), "delay_level 19; allowed: 0 to 18"),
        (Message("t", b"x", tags="a\x01b"), "property 'TAGS' has a character 0x01"),
        (Message("t", b"x", properties={"a\x02": "b"}), "0x01 or 0x02"),
    ],
)
def test_what_no_broker_would_take_is_refused(message, complaint):
    @scenario
    async def check() -> None:
        async with producer("127.0.0.1:1") as sender:
            with pytest.raises(ValueError, match=complaint):
                await sender.send(message)

    check()


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([], "batch of 0 messages"),
        ([Message("t", b"x"), Message("u", b"x")], "topics 't' and 'u'; allowed: one"),
        ([Message("t", b"x", delay_level=1)], "a message with a delay"),
        ([Message("t", b"x" * 3_000_000)] * 2, "batch of 6000000 bytes"),
    ],
)
def test_what_cannot_go_together_is_refused(messages, complaint):
    @scenario
    async def check() -> None:
        async with producer("127.0.0.1:1") as sender:
            with pytest.raises(ValueError, match=complaint):
                await sender.send_batch(messages)

    check()


@scenario
async def test_a_producer_that_was_not_started_sends_nothing():
    with pytest.raises(ClientClosedError):
        await producer("127.0.0.1:1").send(Message("t", b"x"))


def test_compression_is_zlib_as_java_reads_it():
    @scenario
    async def check() -> None:
        async with FakeServer() as server, producer(server.address) as sender:
            await sender.send(Message("t", b"a" * 5000))
            (request,) = server.asked(RequestCode.SEND_MESSAGE_V2)
            assert zlib.decompress(request.body) == b"a" * 5000
            assert request.fields["f"] == str(0x301)

    check()
