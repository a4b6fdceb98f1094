"""Topics of ours and of RocketMQ are mirrored: queues, offsets, messages and times."""

from __future__ import annotations

import asyncio
import operator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.client import (
    Admin,
    Message,
    Producer,
    PullConsumer,
    admin_groups,
    admin_trims,
)
from ropeway.client.admin_mirrors import Mirror, pull
from ropeway.client.admin_offsets import committed
from ropeway.client.errors import AdminError, TopicNotFoundError
from ropeway.gateway.wire import message as stored
from ropeway.gateway.wire.commands.group_admin import ResetOffset
from ropeway.gateway.wire.commands.offsets import UpdateConsumerOffset
from ropeway.testing import running_gateway
from tests.ropeway.client.scenario import (
    CONSUMER,
    PATIENT,
    PRODUCER,
    eventually,
    scenario,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ropeway.client.admin_mirrors import Pair
    from ropeway.client.message import MessageQueue
    from ropeway.testing import Gateway


@pytest.fixture
def target() -> Iterator[Gateway]:
    with running_gateway() as gateway:
        yield gateway


async def send(
    producer: Producer, topic: str, count: int, *, source: Admin | None = None
) -> None:
    """Messages to both queues of a topic, with tags, keys and properties.

    A broker of RocketMQ shows what it has acknowledged a little later.
    """
    queues = await producer.queues(topic)
    ends: dict[MessageQueue, int] = {}
    for number in range(count):
        message = Message(
            topic,
            b"%d" % number * (1 + number * 500),
            tags="odd" if number % 2 else "even",
            keys=(f"k{number}", "all"),
            properties={"colour": "blue"},
        )
        sent = await producer.send(message, queue=queues[number % 2])
        ends[sent.queue] = sent.queue_offset + 1
    if source is not None:
        for queue, end in ends.items():
            await eventually(partial(_end, source, queue), partial(operator.le, end))


async def _end(admin: Admin, queue: MessageQueue) -> int:
    return (await admin.span(queue)).end


def requests_of(admin: Admin) -> list[type]:
    """The kinds of what a client asks from now on."""
    connections, asked = admin._instance.connections, []
    request = connections.request

    async def noted(address: str, header: Any, *words: Any, **more: Any) -> Any:
        asked.append(type(header))
        return await request(address, header, *words, **more)

    connections.request = noted
    return asked


async def copy_all(mirror: Mirror, pairs: list[Pair]) -> int:
    """Copy what there is; how many messages that were."""
    copied = 0
    for pair in pairs:
        offset = await mirror.next_offset(pair)
        async with aclosing(mirror.copies(pair, offset)) as copies:
            async for one in copies:
                copied += one.messages
    return copied


async def contents(admin: Admin, queue: MessageQueue) -> list[object]:
    """All that stays of the messages of a queue, wherever it is."""
    span = await admin.span(queue)
    found: list[object] = [span.begin, span.end]
    offset = span.begin
    while offset < span.end:
        for data in stored.split((await pull(admin, queue, offset)).data):
            one = stored.decode(data)
            assert (one.queue_id, one.queue_offset) == (queue.queue_id, offset)
            found += (one.body, one.properties, one.flag, one.sys_flag, one.born_ms)
            found += (one.born_host, one.store_ms, one.reconsume_times)
            offset += 1
    return found


async def same(source: Admin, target: Admin, pairs: list[Pair]) -> None:
    for pair in pairs:
        theirs = await contents(source, pair.source)
        assert await contents(target, pair.target) == theirs


@scenario
async def test_each_message_keeps_queue_offset_properties_and_times(
    name_server, topic, target
):
    async with (
        Admin(name_server, config=PATIENT) as source,
        Admin(target.name_server, config=PATIENT) as here,
        Producer(name_server, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await source.create_topic(topic, 2)
        await send(producer, topic, 75, source=source)
        mirror = Mirror(source, here)
        pairs = await mirror.prepare(topic)
        assert await copy_all(mirror, pairs) == 75
        assert await copy_all(mirror, pairs) == 0
        await same(source, here, pairs)
        (config,) = await here.topic_configs(topic)
        assert (config.perm, config.read_queue_nums) == (4, 2)
        # Another process goes on where this one ended.
        await send(producer, topic, 10, source=source)
        again = Mirror(source, here)
        pairs = await again.prepare(topic)
        assert await copy_all(again, pairs) == 10
        await same(source, here, pairs)
        assert len(await here.query(topic, "k7")) == 2


@scenario
async def test_a_queue_begins_where_the_source_does(ropeway_gateway, topic, target):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(target.name_server, config=PATIENT) as here,
        Producer(where, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await source.create_topic(topic, 2)
        await send(producer, topic, 9)
        await admin_trims.trim(source, topic, queue_id=0, offset=3)
        await admin_trims.trim(source, topic, queue_id=1, offset=4)
        mirror = Mirror(source, here)
        pairs = await mirror.prepare(topic)
        spans = [await here.span(pair.target) for pair in pairs]
        assert [(one.begin, one.end) for one in spans] == [(3, 3), (4, 4)]
        assert await copy_all(mirror, pairs) == 2
        await same(source, here, pairs)
        # What is gone before it was copied is not passed over in silence.
        await send(producer, topic, 4)
        await admin_trims.trim(source, topic)
        with pytest.raises(AdminError, match="lacks what was from 5 on"):
            await copy_all(mirror, pairs)


@scenario
async def test_what_is_no_mirror_is_refused(name_server, topic, target):
    async with (
        Admin(name_server, config=PATIENT) as source,
        Admin(target.name_server, config=PATIENT) as here,
        Producer(name_server, f"p-{topic}", config=PRODUCER) as producer,
        Producer(target.name_server, f"p-{topic}", config=PRODUCER) as ours,
    ):
        await source.create_topic(topic, 2)
        mirror = Mirror(source, here)
        await here.create_topic(topic, 3)
        with pytest.raises(AdminError, match="3 queues at the target and 2"):
            await mirror.prepare(topic)
        await here.delete_topic(topic)
        await here.create_topic(topic, 2)
        await send(ours, topic, 1)
        with pytest.raises(AdminError, match="ends at 1 at the target and at 0"):
            await mirror.prepare(topic)
        await send(producer, topic, 3, source=source)
        with pytest.raises(AdminError, match="another message at offset 0"):
            await mirror.prepare(topic)
        with pytest.raises(TopicNotFoundError, match="nosuch"):
            await mirror.prepare("nosuch")


@scenario
async def test_a_group_goes_on_at_the_same_offsets(name_server, topic, target):
    group = f"g-{topic}"
    async with (
        Admin(name_server, config=PATIENT) as source,
        Admin(target.name_server, config=PATIENT) as here,
        Producer(name_server, f"p-{topic}", config=PRODUCER) as producer,
        PullConsumer(name_server, group, config=CONSUMER) as consumer,
    ):
        await source.create_topic(topic, 2)
        await send(producer, topic, 6, source=source)
        consumer.subscribe(topic)
        read = 0
        async with asyncio.timeout(120):
            while read < 6:
                read += len(await consumer.poll(1.0))
        await consumer.commit()
        mirror = Mirror(source, here)
        pairs = await mirror.prepare(topic)
        with pytest.raises(AdminError, match=group):
            await mirror.follow(group, pairs)
        await admin_groups.create(here, group, {})
        asked = requests_of(here)
        await mirror.follow(group, pairs)
        await copy_all(mirror, pairs)
        await mirror.follow(group, pairs)
        for pair in pairs:
            assert await committed(here, group, pair.target) == 3
        # Consumers that are told of a reset stop reading, at the source, too.
        assert ResetOffset not in asked
        assert UpdateConsumerOffset in asked
        assert await mirror.follow(group, pairs) == []
