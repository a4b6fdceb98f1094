"""Consumers answer a broker that asks how they do."""

from __future__ import annotations

from ropeway.client import RETRY, Admin, Message, Producer, PullConsumer, admin_clients
from ropeway.client.running_info import Rates, stacks
from tests.ropeway.client.scenario import (
    PATIENT,
    PATIENT_PRODUCER,
    consumer,
    eventually,
    scenario,
)


class Clock:
    """Goes on when it is told to."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_rates_are_those_of_the_last_minute():
    clock = Clock()
    rates = Rates(clock)
    rates.pulled("orders", 120)
    rates.handled("orders", 60, 0.5, failed=False)
    clock.now_s += 25
    rates.handled("orders", 6, 1.5, failed=True)
    assert rates.status("orders") == {
        "pullRT": 0.0,
        "pullTPS": 2.0,
        "consumeRT": 1000.0,
        "consumeOKTPS": 1.0,
        "consumeFailedTPS": 0.1,
        "consumeFailedMsgs": 6,
    }
    clock.now_s += 50
    assert rates.status("orders")["consumeOKTPS"] == 0.0
    assert rates.status("orders")["consumeFailedTPS"] == 0.1
    clock.now_s += 3600
    assert not any(rates.status("orders").values())
    assert not any(rates.status("nosuch").values())


def test_stacks_have_the_names_of_threads():
    assert "MainThread" in stacks()
    assert "test_stacks_have_the_names_of_threads" in stacks()


async def said(admin: Admin, group: str, *, stack: bool = False):
    """What a group's only consumer says, or None."""
    found = [
        one
        for one in await admin_clients.connected(admin)
        if (one.group, one.role) == (group, admin_clients.CONSUMER)
    ]
    if not found:
        return None
    return await admin_clients.consumption(admin, found[0], stack=stack)


@scenario
async def test_a_push_consumer_says_its_queues_rates_and_stacks(ropeway_gateway):
    name_server = ropeway_gateway.name_server
    async with (
        Admin(name_server, config=PATIENT) as admin,
        Producer(name_server, "p", config=PATIENT_PRODUCER) as producer,
    ):
        await admin.create_topic("said", queues=2)
        one = consumer(name_server, "says")
        one.subscribe("said", "*", lambda message: RETRY if message.tags else None)
        async with one:
            for tag in (None, "bad"):
                await producer.send(Message("said", b"x", tags=tag))

            async def is_told() -> bool:
                info = await said(admin, "says")
                if info is None or "said" not in info.rates:
                    return False
                rates = info.rates["said"]
                return rates.consume_ok_tps > 0 and rates.consume_failed_tps > 0

            await eventually(is_told, bool)
            info = await said(admin, "says", stack=True)
            queues = {q.queue.queue_id for q in info.queues if q.queue.topic == "said"}
            assert queues == {0, 1}
            assert info.rates["said"].pull_tps > 0
            assert "MainThread" in info.stack
            assert (await said(admin, "says")).stack is None


@scenario
async def test_a_pull_consumer_says_what_it_has_and_not_done(ropeway_gateway):
    name_server = ropeway_gateway.name_server
    async with (
        Admin(name_server, config=PATIENT) as admin,
        Producer(name_server, "p", config=PATIENT_PRODUCER) as producer,
    ):
        await admin.create_topic("held", queues=1)
        await producer.send(Message("held", b"x"))
        async with PullConsumer(name_server, "holds", auto_commit=False) as one:
            one.subscribe("held", "*")
            while not await one.poll(1.0):
                pass

            async def is_held() -> bool:
                info = await said(admin, "holds")
                return bool(info and any(q.queue.topic == "held" for q in info.queues))

            await eventually(is_held, bool)
