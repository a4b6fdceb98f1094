"""Clients: what they send, and what they tell the model of it.

Each is a process of its own with a host of its own. Bodies are all different, so that
one message cannot be taken for another.
"""

from __future__ import annotations

import asyncio
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ropeway.client import (
    RETRY,
    ConsumeFrom,
    Message,
    MessageQueue,
    Producer,
    ProducerConfig,
    PushConsumer,
    RemotingError,
)
from ropeway.client.config import ConsumerConfig
from tests.simulation.lateness import LATE_S, SLOW_S, Waiting

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator

    from tests.simulation.model import Model
    from tests.simulation.world import World

PORT = 9876
ORDERS, POPS, TIMED, DEALS = "orders", "pops", "timed", "deals"
QUEUES = 4
"""Of each topic on each broker."""
BROKER = 100
"""What the numbers of one broker's queues are apart from the next one's."""
GROUP = "readers"
RETRY_TOPIC = f"%RETRY%poppers_{POPS}"
INVISIBLE_MS = 3000
COMPRESSED = 1
"""The flag of a compressed body."""
OTHER = 0.3
"""How often who pops goes to another broker afterwards."""
ANSWER_S = 8.0
"""How long a raw client waits for an answer until it gives its connection up."""

TIMES: dict[str, Any] = {
    "connect_timeout_s": 1.0,
    "request_timeout_s": 2.0,
    "heartbeat_interval_s": 3.0,
    "route_interval_s": 3.0,
    "reconnect_max_s": 0.5,
    "close_timeout_s": 3.0,
}
CONSUMING = ConsumerConfig(
    **TIMES,
    pull_wait_s=2.0,
    pull_margin_s=2.0,
    retry_delay_s=0.3,
    rebalance_interval_s=2.0,
    commit_interval_s=1.0,
)


class Load:
    """What all clients of a run share.

    Args:
        world: Where they are.
        model: What they tell.
        until_s: When they stop to send, by the loop's time.
        pause_s: How long they wait between two requests, on average.
        hosts: Of the nodes.
        copies: How many of them each broker has.
    """

    def __init__(
        self,
        world: World,
        model: Model,
        until_s: float,
        pause_s: float,
        hosts: list[str],
        copies: int = 1,
    ) -> None:
        self.world = world
        self.model = model
        self.until_s = until_s
        self._pause_s = pause_s
        self.hosts = hosts
        self.copies = copies
        self.brokers = len(hosts) // copies
        self.address = ";".join(f"{host}:{PORT}" for host in hosts)
        self.done = asyncio.Event()
        """Set when consumers may end."""

    async def turns(self, chance: random.Random) -> AsyncIterator[int]:
        """Numbers, until it is time to stop, with pauses between them."""
        number = 0
        loop = self.world.loop
        while loop.time() < self.until_s:
            yield number
            number += 1
            await asyncio.sleep(chance.expovariate(1 / self._pause_s))

    def body(self, name: str, number: int, chance: random.Random) -> bytes:
        """A body that nobody else sends; some are long."""
        size = chance.choice([0, 0, 0, 100, 1000, 6000])
        return b"%s-%d%s" % (name.encode(), number, b"." * size)

    def queue(self, topic: str, chance: random.Random) -> MessageQueue:
        """Any queue of any broker."""
        broker = chance.randrange(self.brokers) if self.brokers > 1 else 0
        return MessageQueue(topic, f"broker-{broker}", chance.randrange(QUEUES))


def number_of(broker: str, queue_id: int) -> int:
    """A queue's number among all of its topic: each broker counts its own from 0."""
    return int(broker.removeprefix("broker-")) * BROKER + queue_id


def body_of(message: Any) -> bytes:
    """What was sent, of a raw message."""
    if message.sys_flag & COMPRESSED:
        return zlib.decompress(message.body)
    return bytes(message.body)


async def produce(load: Load, name: str) -> None:
    """Send one message after the other to one topic, some of them in order."""
    chance = load.world.chance(name)
    topic = chance.choice([ORDERS, ORDERS, POPS])
    # What is popped must be there once, so that it can be told from what comes again.
    retries = chance.choice([0, 2]) if topic == ORDERS else 0
    config = ProducerConfig(**TIMES, retries=retries)
    async with Producer(load.address, "producers", config=config) as producer:
        async for number in load.turns(chance):
            body = load.body(name, number, chance)
            queue = None
            if chance.random() < 0.5:
                queue = load.queue(topic, chance)
            sent = load.model.sending(body, topic, name)
            sent.tries = 1 if queue else 1 + retries
            message = Message(topic, body, tags="a", keys=(f"k{number % 7}",))
            with suppress(RemotingError):
                result = await producer.send(message, queue, timeout_s=2.0)
                number_there = number_of(
                    result.queue.broker_name, result.queue.queue_id
                )
                load.model.acknowledged(body, number_there, result.queue_offset)


async def produce_batches(load: Load, name: str) -> None:
    """Send several messages at once: all of them are stored, or none."""
    chance = load.world.chance(name)
    config = ProducerConfig(**TIMES, retries=0)
    async with Producer(load.address, "producers", config=config) as producer:
        async for number in load.turns(chance):
            count = chance.randint(2, 5)
            bodies = [load.body(f"{name}.{at}", number, chance) for at in range(count)]
            for body in bodies:
                load.model.sending(body, ORDERS).is_batch = bodies[0]
            queue = load.queue(ORDERS, chance)
            messages = [Message(ORDERS, body) for body in bodies]
            with suppress(RemotingError):
                results = await producer.send_batch(messages, queue, timeout_s=2.0)
                for body, result in zip(bodies, results, strict=True):
                    there = number_of(result.queue.broker_name, result.queue.queue_id)
                    load.model.acknowledged(body, there, result.queue_offset)


async def produce_timed(load: Load, name: str) -> None:
    """Send messages that are to come later."""
    chance = load.world.chance(name)
    config = ProducerConfig(**TIMES, retries=0)
    async with Producer(load.address, "producers", config=config) as producer:
        async for number in load.turns(chance):
            body = load.body(name, number, chance)
            level = chance.choice([0, 0, 1, 2])
            # A short one may be over before the disk has the message.
            delay_ms = 0 if level else chance.choice([30, 200, 1000, 6000])
            delay_ms = delay_ms and chance.randint(delay_ms // 3, delay_ms)
            delay_s = {0: delay_ms / 1000, 1: 1.0, 2: 5.0}[level]
            sent = load.model.sending(body, TIMED)
            # Brokers count in milliseconds.
            asked_s = load.world.loop.time()
            sent.due_s = asked_s + delay_s - 0.002
            message = Message(TIMED, body, delay_level=level, delay_ms=delay_ms)
            with suppress(RemotingError):
                result = await producer.send(message, timeout_s=2.0)
                load.model.promised(body)
                broker = number_of(result.queue.broker_name, 0) // BROKER
                times = asked_s, sent.acked_s, delay_s, LATE_S + SLOW_S
                load.model.waiting.append(
                    Waiting(body, TIMED, broker, *times, is_timed=not level)
                )
            await asyncio.sleep(chance.uniform(0, 0.2))


async def consume(load: Load, name: str) -> None:
    """Consume in a group whose members come and go; refuse some messages."""
    chance = load.world.chance(name)

    async def handle(message: Any) -> Any:
        if not message.reconsume_times:
            queue = message.queue
            there = number_of(queue.broker_name, queue.queue_id)
            load.model.saw(queue.topic, there, message.queue_offset, message.body)
        if chance.random() < 0.02 and load.world.loop.time() < load.until_s:
            return RETRY
        load.model.handled[GROUP].add(message.body)
        return None

    while not load.done.is_set():
        consumer = PushConsumer(
            load.address, GROUP, consume_from=ConsumeFrom.FIRST_OFFSET, config=CONSUMING
        )
        for topic in (ORDERS, TIMED, DEALS):
            consumer.subscribe(topic, "*", handle)
        try:
            async with consumer:
                stay_s = chance.uniform(1.0, 12.0)
                if load.world.loop.time() > load.until_s:
                    stay_s = 3600.0
                with suppress(TimeoutError):
                    await asyncio.wait_for(load.done.wait(), stay_s)
        except RemotingError:
            await asyncio.sleep(0.5)
