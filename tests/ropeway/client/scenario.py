"""Asynchronous tests: a time limit, no task left behind, and things they wait for."""

import asyncio
import functools
import operator
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import structs

from ropeway.client import (
    Admin,
    ClientConfig,
    ConsumeFrom,
    ConsumerConfig,
    Message,
    Producer,
    ProducerConfig,
    PushConsumer,
    ReceivedMessage,
)

LIMIT_S = 280

PATIENCE = {"connect_timeout_s": 60.0, "request_timeout_s": 60.0}
"""For machines on which much else runs."""

CONSUMER = ConsumerConfig(
    **PATIENCE,
    heartbeat_interval_s=1,
    route_interval_s=0.5,
    rebalance_interval_s=1,
    rebalance_retry_s=0.1,
    commit_interval_s=0.2,
    retry_delay_s=0.1,
    suspend_s=0.05,
    lock_interval_s=0.5,
)
"""Short intervals, so that tests need not wait."""

SENDING = {**PATIENCE, "send_timeout_s": 60.0}
PRODUCER = ProducerConfig(**SENDING, heartbeat_interval_s=1, route_interval_s=0.5)

PATIENT = ClientConfig(**PATIENCE)
PATIENT_PRODUCER = ProducerConfig(**SENDING)
PATIENT_CONSUMER = ConsumerConfig(**PATIENCE)


def scenario(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an asynchronous test, and see that its clients left nothing running."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(LIMIT_S):
                await test(*args, **kwargs)
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(limited())

    return run


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not condition():  # noqa: ASYNC110 - conditions are of many kinds
        await asyncio.sleep(0.01)


async def eventually(
    question: Callable[[], Awaitable[Any]], wanted: Callable[[Any], bool]
) -> Any:
    """Ask until the answer is wanted: brokers index messages a little later."""
    while not wanted(answer := await question()):  # noqa: ASYNC110 - asks a server
        await asyncio.sleep(0.02)
    return answer


async def shown(name_server: str, topic: str, count: int) -> int:
    """Wait until a topic has so many messages; how many it has.

    A broker of RocketMQ shows what it has acknowledged a little later.
    """

    async def there() -> int:
        return sum(span.end for span in await admin.describe_topic(topic))

    async with Admin(name_server, config=PATIENT) as admin:
        return int(await eventually(there, functools.partial(operator.le, count)))


class Inbox:
    """A handler that keeps what it gets."""

    def __init__(self) -> None:
        self.messages: list[ReceivedMessage] = []

    async def __call__(self, message: ReceivedMessage) -> None:
        self.messages.append(message)

    @property
    def bodies(self) -> list[bytes]:
        """What came, in the order of its coming."""
        return [message.body for message in self.messages]

    async def wait_for(self, *bodies: bytes) -> None:
        """Wait until all of them have come."""
        await until(lambda: set(bodies) <= set(self.bodies))


def consumer(name_server: str, group: str, **options: Any) -> PushConsumer:
    """A push consumer with short intervals that starts at the first message."""
    options.setdefault("consume_from", ConsumeFrom.FIRST_OFFSET)
    settings = {
        name: options.pop(name)
        for name in ConsumerConfig.__struct_fields__
        if name in options
    }
    config = structs.replace(options.pop("config", CONSUMER), **settings)
    return PushConsumer(name_server, group, config=config, **options)


async def send_all(name_server: str, topic: str, bodies: list[bytes]) -> None:
    """Send messages one after the other; this also creates the topic."""
    async with Producer(name_server, "senders", config=PRODUCER) as producer:
        for body in bodies:
            await producer.send(Message(topic, body))


def numbered(count: int, prefix: str = "m") -> list[bytes]:
    """Bodies that tell messages apart."""
    return [f"{prefix}{number}".encode() for number in range(count)]
