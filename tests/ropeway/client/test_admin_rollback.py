"""Topics go back to their source: nothing is lost, order holds, groups go on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ropeway.client import (
    Admin,
    ConsumeFrom,
    Message,
    Producer,
    PushConsumer,
    RemotingError,
    admin_copies,
    admin_groups,
    admin_topics,
)
from ropeway.client.admin_finish import Finish
from ropeway.client.admin_mirrors import Mirror
from ropeway.client.admin_rollback import RETURNED, SENT_BACK, Rollback, origin_of
from ropeway.client.errors import AdminError, ResponseError
from ropeway.gateway.wire.commands.admin import HELD
from ropeway.gateway.wire.commands.broker_admin import GetBrokerRuntimeInfo
from tests.ropeway.client.scenario import CONSUMER, PATIENT, PRODUCER, scenario, until
from tests.ropeway.client.test_admin_cut_over import KilledError, both, led, led_to
from tests.ropeway.client.test_admin_finish import moved
from tests.ropeway.client.test_admin_mirrors import send, target

if TYPE_CHECKING:
    from ropeway.client import ReceivedMessage
    from ropeway.client.admin_mirrors import Pair
    from ropeway.client.lags import QueueSpan
    from ropeway.client.message import MessageQueue

__all__ = ["led", "target"]

SETTLE_S = 10.0
"""Clients of these tests look at routes twice a second."""


async def read_all(
    admin: Admin, topic: str, broker: str | None = None
) -> dict[tuple[int, int], bytes]:
    """The messages of a topic, of one broker if it is named, by queue and offset."""
    found = {}
    for queue in (await admin.route(topic)).read_queues:
        if broker not in (None, queue.broker_name):
            continue
        end = (await admin.span(queue)).end
        async for one in admin_copies.messages(admin, queue, 0, end):
            found[queue.queue_id, one.queue_offset] = one.body
    return found


@scenario
async def test_copies_that_the_source_shows_late_are_not_sent_twice(
    ropeway_gateway, topic, led
):
    async with (
        Admin(ropeway_gateway.name_server, config=PATIENT) as source,
        Admin(led.name_server, config=PATIENT) as ours,
        Producer(led.name_server, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await source.create_topic(topic, 2)
        await moved(source, ours, topic)
        await send(producer, topic, 6)
        span, shown = source.span, {}

        async def late(queue: MessageQueue) -> QueueSpan:
            """What it was the first time, for some looks."""
            looks = shown.setdefault(queue, [await span(queue)] * 9)
            return looks.pop() if looks else await span(queue)

        source.span = late  # type: ignore[method-assign]
        job = Rollback(source, ours, Mirror(source, ours), 0)
        done = await job.roll_back([topic], [], lambda _: None)
        assert done.sent == {topic: 6}
        assert len(await read_all(source, topic)) == 6


class Late:
    """A source that is behind for some looks, and shows what it had before."""

    def __init__(self, source: Admin, shown: dict[MessageQueue, QueueSpan]) -> None:
        self._span, self._ask, self._shown = source.span, source.ask_broker, shown
        self.looks = self._end = 0
        source.span = self.span  # type: ignore[method-assign]
        source.ask_broker = self.ask  # type: ignore[method-assign]

    async def span(self, queue: MessageQueue) -> QueueSpan:
        return self._shown[queue] if self.looks else await self._span(queue)

    async def ask(self, broker: str, header: Any, *words: Any, **more: Any) -> Any:
        answer = await self._ask(broker, header, *words, **more)
        if not isinstance(header, GetBrokerRuntimeInfo):
            return answer
        # Others send all the time: it is never at the end.
        self.looks -= self.looks > 0
        self._end += 1000
        facts = {"commitLogMaxOffset": str(self._end)}
        facts["dispatchBehindBytes"] = str(100 + self.looks * 10_000)
        return answer._replace(body=msgspec.json.encode({"table": facts}))


@scenario
async def test_a_rollback_that_goes_on_waits_for_copies_that_are_not_shown_yet(
    ropeway_gateway, topic, led
):
    async with (
        Admin(ropeway_gateway.name_server, config=PATIENT) as source,
        Admin(led.name_server, config=PATIENT) as ours,
        Producer(led.name_server, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await source.create_topic(topic, 2)
        await moved(source, ours, topic)
        await send(producer, topic, 6)
        pairs = await Mirror(source, ours).pairs(topic)
        spans = {pair.source: await source.span(pair.source) for pair in pairs}
        late = Late(source, spans)

        def killed(step: str) -> None:
            if step.startswith("send on"):
                raise KilledError

        with pytest.raises(KilledError):
            await Rollback(source, ours, Mirror(source, ours), 0).roll_back(
                [topic], [], killed
            )
        late.looks = 3
        job = Rollback(source, ours, Mirror(source, ours), 0)
        done = await job.roll_back([topic], [], lambda _: None)
        assert done.sent == {topic: 0}
        assert len(await read_all(source, topic)) == 6


@scenario
async def test_clients_go_back_without_loss_and_in_order(name_server, topic):
    group = f"g-{topic}"
    acknowledged: list[tuple[str, int, bytes]] = []
    received: list[tuple[int, bytes]] = []
    enough = asyncio.Event()

    async def produce(producer: Producer) -> None:
        while not enough.is_set():
            body = b"number %d" % len(acknowledged)
            try:
                sent = await producer.send(Message(topic, body))
            except RemotingError:
                await asyncio.sleep(0.05)
                continue
            queue = sent.queue
            acknowledged.append((queue.broker_name, queue.queue_id, body))
            await asyncio.sleep(0.01)

    async def handle(message: ReceivedMessage) -> None:
        received.append((message.queue.queue_id, message.body))

    async def acknowledge(broker: str, count: int) -> None:
        await until(lambda: sum(one == broker for one, _, _ in acknowledged) >= count)

    with led_to(name_server) as here:
        async with (
            Admin(name_server, config=PATIENT) as source,
            Admin(here.name_server, config=PATIENT) as ours,
            Producer(name_server, f"p-{topic}", config=PRODUCER) as early,
            Producer(here.name_server, f"p-{topic}", config=PRODUCER) as producer,
        ):
            await source.create_topic(topic, 2)
            await send(early, topic, 4)
            for admin in (source, ours):
                await admin_groups.create(admin, group, {})
            await moved(source, ours, topic)
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
                await acknowledge("target-0", 50)
                job = Rollback(source, ours, Mirror(source, ours), SETTLE_S)
                assert await job.stage(topic) == "cut_over"
                steps: list[str] = []
                done = await job.roll_back([topic], [group], steps.append)
                assert steps[-1] == f"lead clients of {topic} to the source"
                assert await job.stage(topic) == RETURNED
                assert done.sent[topic] >= 50
                assert done.waiting == {topic: 0}
                assert done.paused_s > 0
                await acknowledge("broker-0", 50)
                enough.set()
                await producing
                wanted = {body for _, _, body in acknowledged}
                await until(lambda: wanted <= {body for _, body in received})
            # The source has all of it, in the order of each queue.
            stored = await read_all(source, topic)
            for queue_id in (0, 1):
                sent = [body for _, q, body in acknowledged if q == queue_id]
                there = [
                    body for (q, _), body in sorted(stored.items()) if q == queue_id
                ]
                assert there[2:] == sent
                got = [body for q, body in received if q == queue_id]
                assert [*dict.fromkeys(got)][2:] == sent


async def copied(source: Admin, pair: Pair) -> list[int]:
    end = (await source.span(pair.source)).end
    return [
        origin
        async for one in admin_copies.messages(source, pair.source, 0, end)
        if (origin := origin_of(one, pair)) is not None
    ]


@scenario
async def test_whatever_step_it_is_killed_at_it_goes_on(name_server, topic):
    group, topics = f"g-{topic}", [topic, f"{topic}-too"]
    async with both(name_server, topic) as (source, ours, early, producer):
        for admin in (source, ours):
            await admin_groups.create(admin, group, {})
        for each in topics:
            await source.create_topic(each, 2)
            await send(early, each, 4)
            await moved(source, ours, each)
            await send(producer, each, 6)
        for last in range(1, 20):
            steps: list[str] = []

            def say(step: str, steps: list[str] = steps, last: int = last) -> None:
                if len(steps) == last:
                    raise KilledError
                steps.append(step)

            job = Rollback(source, ours, Mirror(source, ours), 0)
            try:
                await job.roll_back(topics, [group], say)
            except KilledError:
                continue
            break
        for each in topics:
            assert await job.stage(each) == RETURNED
            for pair in await Mirror(source, ours).pairs(each):
                assert await copied(source, pair) == [2, 3, 4]
            (config,) = await source.topic_configs(each)
            assert config.perm == 6
        # Old routes lead here still, and what comes by them is sent on.
        sent = await producer.send(Message(topic, b"by an old route"))
        assert (await read_all(source, topic))[
            sent.queue.queue_id, sent.queue_offset
        ] == b"by an old route"
        with pytest.raises(AdminError, match="has not moved"):
            await Finish(source, ours).end(topic)


@pytest.mark.slow
@scenario
async def test_what_was_not_due_goes_back_when_it_is(ropeway_gateway, topic, led):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(led.name_server, config=PATIENT) as ours,
        Producer(led.name_server, f"p-{topic}", config=PRODUCER) as producer,
    ):
        await source.create_topic(topic, 1)
        await moved(source, ours, topic)
        await producer.send(Message(topic, b"soon", delay_ms=15_000))
        await producer.send(Message(topic, b"in two hours", delay_level=18))
        while not await ours.waiting(topic):  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.01)
        job = Rollback(source, ours, Mirror(source, ours), 0)
        done = await job.roll_back([topic], [], lambda _: None)
        if not done.sent[topic]:
            assert done.waiting == {topic: 2}
            while (  # noqa: ASYNC110 - only asking tells
                done := await job.roll_back([topic], [], lambda _: None)
            ).waiting[topic] > 1:
                await asyncio.sleep(0.1)
        while not (bodies := await read_all(source, topic)):
            await job.roll_back([topic], [], lambda _: None)
        assert [*bodies.values()] == [b"soon"]


@scenario
async def test_steps_that_are_not_next_are_refused(ropeway_gateway, topic, led):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(led.name_server, config=PATIENT) as ours,
        Producer(led.name_server, f"p-{topic}", config=PRODUCER) as producer,
    ):
        lead = admin_topics.lead_writes
        await source.create_topic(topic, 2)
        await moved(source, ours, topic)
        await send(producer, topic, 2)
        with pytest.raises(ResponseError, match="is not to be returned now"):
            await lead(ours, topic, RETURNED)
        with pytest.raises(ResponseError, match="were held for too long"):
            await lead(ours, topic, SENT_BACK, "one", ends="1,1")
        with pytest.raises(ResponseError, match="lets this node send nothing to"):
            await lead(ours, topic, HELD, "one")
        await admin_topics.update(source, topic, perm=6)
        await lead(ours, topic, HELD, "one")
        with pytest.raises(ResponseError, match="were held for too long"):
            await lead(ours, topic, SENT_BACK, "another", ends="1,1")
        for ends in ("0,1", "1", "x,1"):
            # A busy machine may be late for a hold.
            said = "were held for too long"
            while "were held for too long" in said:
                await lead(ours, topic, HELD, "one")
                with pytest.raises(ResponseError) as refused:
                    await lead(ours, topic, SENT_BACK, "one", ends=ends)
                said = str(refused.value)
            assert "the source lacks messages of" in said
        # A hold ends by itself, and what waited is stored here.
        await send(producer, topic, 2)
        assert len(await read_all(ours, topic)) == 4
        assert not await read_all(source, topic)


@scenario
async def test_what_cannot_go_back_stays_where_it_is(ropeway_gateway, topic, target):
    where = ropeway_gateway.name_server
    async with (
        Admin(where, config=PATIENT) as source,
        Admin(target.name_server, config=PATIENT) as ours,
    ):
        await source.create_topic(topic, 2)
        job = Rollback(source, ours, Mirror(source, ours), 0)
        with pytest.raises(AdminError, match="is not at the target"):
            await job.stage(topic)
        await Mirror(source, ours).prepare(topic)
        with pytest.raises(AdminError, match="has not moved; its source has it"):
            await job.roll_back([topic], [], lambda _: None)
        await ours.create_topic(f"{topic}-ours", 1)
        with pytest.raises(AdminError, match="was not cut over here, or is finished"):
            await job.roll_back([f"{topic}-ours"], [], lambda _: None)
