"""Topics are cut over: nothing is lost, order holds, and what is killed goes on."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ropeway.client import (
    Admin,
    ConsumeFrom,
    Message,
    Producer,
    PushConsumer,
    RemotingError,
    admin_groups,
    admin_offsets,
    admin_topics,
)
from ropeway.client.admin_cut_over import CutOver
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_undelivered import Undelivered
from ropeway.client.errors import AdminError, ResponseError
from ropeway.gateway.wire import receipt
from ropeway.gateway.wire.commands.admin import GetTopicStats
from ropeway.gateway.wire.commands.pop import AckMessage, PopReply
from ropeway.gateway.wire.receipt import Receipt
from ropeway.testing import running_gateway
from tests.ropeway.client.scenario import (
    CONSUMER,
    PATIENT,
    PRODUCER,
    eventually,
    scenario,
    until,
)
from tests.ropeway.client.test_admin_mirrors import (
    copy_all,
    requests_of,
    same,
    send,
    target,
)
from tests.ropeway.client.test_admin_under_way import pop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ropeway.client import ReceivedMessage
    from ropeway.client.connection import Response
    from ropeway.testing import Gateway

__all__ = ["target"]

SETTLE_S = 3.0
"""Clients of these tests look at routes twice a second."""

PATIENCE_S = 120.0


class KilledError(Exception):
    """The command ended here."""


@contextmanager
def led_to(source: str) -> Iterator[Gateway]:
    options = ("--broker", "target-0", "--migrate-from", source)
    with running_gateway(options=options) as gateway:
        yield gateway


@asynccontextmanager
async def both(
    source: str, topic: str
) -> AsyncIterator[tuple[Admin, Admin, Producer, Producer]]:
    """A source and a target that leads to it: who asks each, and who sends to each."""
    group = f"p-{topic}"
    with led_to(source) as here:
        async with (
            Admin(source, config=PATIENT) as there,
            Admin(here.name_server, config=PATIENT) as ours,
            Producer(source, group, config=PRODUCER) as early,
            Producer(here.name_server, group, config=PRODUCER) as producer,
        ):
            yield there, ours, early, producer


@pytest.fixture
def led(ropeway_gateway: Gateway) -> Iterator[Gateway]:
    with led_to(ropeway_gateway.name_server) as gateway:
        yield gateway


@pytest.mark.slow
@scenario
async def test_clients_go_over_without_loss_and_in_order(ropeway_gateway, topic):
    where, group = ropeway_gateway.name_server, f"g-{topic}"
    acknowledged: list[tuple[str, str]] = []
    received: list[tuple[int, int, bytes]] = []
    enough = asyncio.Event()

    async def produce(producer: Producer) -> None:
        while not enough.is_set():
            body = b"%d" % len(acknowledged)
            try:
                sent = await producer.send(Message(topic, body))
            except RemotingError:
                await asyncio.sleep(0.05)
                continue
            acknowledged.append((sent.queue.broker_name, body.decode()))
            await asyncio.sleep(0.01)

    async def handle(message: ReceivedMessage) -> None:
        received.append((message.queue.queue_id, message.queue_offset, message.body))

    async def acknowledge(broker: str, count: int) -> None:
        await until(lambda: sum(one == broker for one, _ in acknowledged) >= count)

    with led_to(where) as here:
        async with (
            Admin(where, config=PATIENT) as source,
            Admin(here.name_server, config=PATIENT) as ours,
            Producer(here.name_server, f"p-{topic}", config=PRODUCER) as producer,
        ):
            await source.create_topic(topic, 2)
            await admin_groups.create(ours, group, {})
            consumer = PushConsumer(
                here.name_server,
                group,
                config=CONSUMER,
                consume_from=ConsumeFrom.FIRST_OFFSET,
                orderly=True,
            )
            consumer.subscribe(topic, "*", handle)
            producing = asyncio.create_task(produce(producer))
            async with consumer:
                await acknowledge("broker-0", 50)
                mirror = Mirror(source, ours)
                pairs = await mirror.prepare(topic)
                await copy_all(mirror, pairs)
                job = CutOver(source, ours, mirror, SETTLE_S)
                assert await job.not_moved([topic]) == [topic]
                steps: list[str] = []
                await job.move([topic], [group], steps.append)
                assert steps[0].startswith(f"lead producers of {topic} here")
                assert steps[-1] == f"open {topic}"
                assert await job.not_moved([topic]) == []
                await acknowledge("target-0", 50)
                enough.set()
                await producing
                wanted = {body.encode() for _, body in acknowledged}
                await until(lambda: wanted <= {body for _, _, body in received})
            brokers = [broker for broker, _ in acknowledged]
            assert brokers == sorted(brokers), "there is no way back"
            for queue_id in (0, 1):
                first = [*dict.fromkeys(at for q, at, _ in received if q == queue_id)]
                assert first == list(range(len(first)))
            bodies = {(q, at): body for q, at, body in received}
            assert bodies == {(q, at): body for q, at, body in reversed(received)}


@scenario
async def test_whatever_step_it_is_killed_at_it_goes_on(ropeway_gateway, topic, led):
    where, group = ropeway_gateway.name_server, f"g-{topic}"
    topics = [topic, f"{topic}-too"]
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(led.name_server, config=PATIENT) as ours,
        Producer(where, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await admin_groups.create(source, group, {})
        await admin_groups.create(ours, group, {})
        mirror = Mirror(source, ours)
        pairs = []
        for each in topics:
            await source.create_topic(each, 2)
            await send(producer, each, 6)
            pairs += await mirror.prepare(each)
        wanted = {pair.source: 2 for pair in pairs}
        await admin_offsets.place(source, group, wanted)
        seen: list[str] = []
        for last in range(1, 20):
            left = await CutOver(source, ours, mirror, 0).not_moved(topics)
            if not left:
                break
            steps: list[str] = []

            def say(step: str, steps: list[str] = steps, last: int = last) -> None:
                if len(steps) == last:
                    raise KilledError
                steps.append(step)

            try:
                await CutOver(source, ours, mirror, 0).move(left, [group], say)
            except KilledError:
                seen += steps
        # Each step of a topic was done once, the last ones by another run.
        for step in ("lead", "store", "open"):
            done = [one for one in seen if one.startswith(step)]
            assert len(done) == len(set(done)), seen
        await same(source, ours, pairs)
        for pair in pairs:
            assert await admin_offsets.committed(ours, group, pair.target) == 2
        for each in topics:
            (config,) = await source.topic_configs(each)
            assert config.perm == 4
            (config,) = await ours.topic_configs(each)
            assert config.perm == 6
        async with Producer(led.name_server, f"q-{topic}", config=PRODUCER) as one:
            sent = await one.send(Message(topic, b"next"))
            assert sent.queue_offset == 3
        # A mirror that still runs moves no group of a topic that has moved.
        await admin_offsets.place(source, group, dict.fromkeys(wanted, 1))
        assert await mirror.follow(group, pairs) == []


@scenario
async def test_nothing_is_stored_here_that_the_source_may_have_stored(
    ropeway_gateway, topic, led
):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(led.name_server, config=PATIENT) as ours,
        Producer(led.name_server, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await source.create_topic(topic, 2)
        mirror = Mirror(source, ours)
        pairs = await mirror.prepare(topic)
        job = CutOver(source, ours, mirror, 0)
        with pytest.raises(ResponseError, match="are not sent on to the source yet"):
            await admin_topics.lead_writes(ours, topic, "stored", "one")
        with pytest.raises(ResponseError, match="allowed: at_source, passed_on, held"):
            await admin_topics.lead_writes(ours, topic, "nowhere")
        await admin_topics.lead_writes(ours, topic, "passed_on")
        await send(producer, topic, 4)
        with pytest.raises(ResponseError, match="were held for too long"):
            await admin_topics.lead_writes(ours, topic, "stored", "one")
        await admin_topics.lead_writes(ours, topic, "held", "one")
        with pytest.raises(ResponseError, match="were held for too long"):
            await admin_topics.lead_writes(ours, topic, "stored", "another")
        with pytest.raises(ResponseError, match="lacks messages"):
            await admin_topics.lead_writes(ours, topic, "stored", "one")
        # A hold ends by itself, and what waited goes to the source.
        await send(producer, topic, 2)
        assert await copy_all(mirror, pairs) == 6
        await same(source, ours, pairs)
        await job.move([topic], [], lambda _: None)
        with pytest.raises(ResponseError, match="is no mirror"):
            await admin_topics.lead_writes(ours, topic, "passed_on")


@scenario
async def test_what_cannot_be_cut_over_stays_where_it_is(
    ropeway_gateway, topic, target
):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(target.name_server, config=PATIENT) as ours,
    ):
        await source.create_topic(topic, 2)
        job = CutOver(source, ours, Mirror(source, ours), 0)
        with pytest.raises(AdminError, match="is not at the target; mirror it first"):
            await job.not_moved([topic])
        await Mirror(source, ours).prepare(topic)
        with pytest.raises(ResponseError, match="start it with --migrate-from"):
            await job.move([topic], [], lambda _: None)
        assert await job.not_moved([topic]) == [topic]


@scenario
async def test_what_comes_again_to_pops_is_waited_for(ropeway_gateway, topic, led):
    where, group = ropeway_gateway.name_server, f"pop-{topic}"
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(led.name_server, config=PATIENT) as ours,
        Producer(where, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await source.create_topic(topic, 1)
        for admin in (source, ours):
            await admin_groups.create(admin, group, {})
        await producer.send(Message(topic, b"refused"))
        # Whoever gets it first does not acknowledge it.
        first = replace(pop(topic), invisible_time=1)
        assert b"refused" in (await source.ask_broker("broker-0", first)).body
        found, mirror = Undelivered(source), Mirror(source, ours)
        await eventually(
            lambda: found.retries_of_pops(topic, "broker-0", group), lambda at: at == 1
        )
        await mirror.prepare(topic)

        def say(step: str) -> None:
            if step.startswith("wait until groups"):
                raise KilledError

        with pytest.raises(KilledError):
            await CutOver(source, ours, mirror, 0).move([topic], [group], say)
        asked = requests_of(source)
        job = CutOver(source, ours, mirror, PATIENCE_S)
        moving = asyncio.create_task(job.move([topic], [group], lambda _: None))
        # Whoever has looked three times waits.
        await until(lambda: moving.done() or asked.count(GetTopicStats) > 2 * 2)
        assert await mirror.is_mirror(topic)
        again = await source.ask_broker("broker-0", pop(topic))
        assert b"refused" in again.body
        await source.ask_broker("broker-0", acknowledging(again, topic, group))
        await moving
        assert not await mirror.is_mirror(topic)


def acknowledging(popped: Response, topic: str, group: str) -> AckMessage:
    """What says that the only message of a pop, a retry, is done."""
    told = popped.header(PopReply)
    assert told.start_offset_info is not None
    kind, queue_id, offset = map(int, told.start_offset_info.split(" "))
    times = told.pop_time, told.invisible_time, told.revive_qid
    of = Receipt(offset, *times, kind, "broker-0", queue_id)
    return AckMessage(
        consumer_group=group,
        topic=receipt.retry_topic(group, topic, kind),
        queue_id=queue_id,
        extra_info=receipt.dump(of, offset),
        offset=offset,
    )
