"""Loads of `ropeway bench`: many messages are sent, or received, and timed."""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from ropeway.client import ConsumeFrom, Message, RemotingError
from ropeway.client.errors import may_succeed_elsewhere
from ropeway.gateway.cli.consume import Start, raise_refusal, read_all
from ropeway.gateway.cli.latencies import Latencies

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from ropeway.client import Producer, PullConsumer
    from ropeway.gateway.cli.target import Target

GROUP = "ropeway-bench"
_POLL_COUNT = 1000
_LOOK_S = 0.2
_MS = 1000.0


class Load(NamedTuple):
    """How much is to be sent or received."""

    topic: str
    messages: int | None
    """None: until the time is over."""
    seconds: float | None
    clients: int


class Sends(NamedTuple):
    """How messages are sent."""

    size: int
    batch: int
    in_flight: int
    """Requests that each client has under way."""
    rate: float | None
    """Messages a second, of all clients together; None: as many as can be."""


class Outcome:
    """What was measured so far."""

    def __init__(self) -> None:
        self.latencies = Latencies()
        self.messages = 0
        self.bytes = 0
        self.failed = 0
        self.failure: RemotingError | None = None
        """Why sends failed, the last of them."""
        self.seconds = 0.0
        """From the first to the last of them."""


async def produce(
    cluster: Target, load: Load, sends: Sends, step: Callable[[int], None]
) -> Outcome:
    """Send messages; a latency is that of a request, from when it was due.

    Args:
        cluster: Where to.
        load: How many.
        sends: How.
        step: Told how many were sent.

    Raises:
        RemotingError: A server refuses what another one would refuse, too; or no send
            went well.
    """
    found = Outcome()
    message = Message(load.topic, b"x" * sends.size)
    numbers = itertools.count()
    async with AsyncExitStack() as stack:
        producers = [
            await stack.enter_async_context(cluster.producer(GROUP))
            for _ in range(load.clients)
        ]
        for one in producers:
            await one.queues(load.topic)
        began = time.perf_counter()

        async def send(producer: Producer) -> None:
            while (start := await _due(next(numbers), load, sends, began)) is not None:
                count = _batch(start.number, load, sends)
                try:
                    if count == 1:
                        await producer.send(message)
                    else:
                        await producer.send_batch([message] * count)
                except RemotingError as error:
                    if not may_succeed_elsewhere(error):
                        raise
                    found.failed += count
                    found.failure = error
                    continue
                now = time.perf_counter()
                found.latencies.add((now - start.due) * _MS)
                found.messages += count
                found.bytes += count * sends.size
                found.seconds = now - began
                step(count)

        await _all(send(one) for one in producers for _ in range(sends.in_flight))
    if found.failure is not None and not found.messages:
        raise found.failure
    return found


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all of some work at once; the first error ends it."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for one in work:
                tasks.create_task(one)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors


class _Turn(NamedTuple):
    number: int
    due: float


async def _due(number: int, load: Load, sends: Sends, began: float) -> _Turn | None:
    """When a request is due, once it is; None where no more are to be sent."""
    first = number * sends.batch
    if load.messages is not None and first >= load.messages:
        return None
    now = time.perf_counter()
    due = now if sends.rate is None else began + first / sends.rate
    if load.seconds is not None and max(due, now) > began + load.seconds:
        return None
    if due > now:
        await asyncio.sleep(due - now)
    return _Turn(number, due)


def _batch(number: int, load: Load, sends: Sends) -> int:
    if load.messages is None:
        return sends.batch
    return min(sends.batch, load.messages - number * sends.batch)


async def consume(
    cluster: Target,
    load: Load,
    where: ConsumeFrom,
    wait_s: float,
    step: Callable[[int], None],
) -> Outcome:
    """Receive messages without a group; a latency is a message's age.

    Its age counts from when its producer made it, by both machines' clocks.

    Args:
        cluster: Where from.
        load: How many; each client reads all queues where there are several.
        where: At which end of each queue to begin.
        wait_s: Stop when nothing came for so long.
        step: Told how many were received.

    Raises:
        RemotingError: A server refuses.
    """
    found = Outcome()
    began = time.perf_counter()
    first: float | None = None

    def note(messages: int, size: int) -> None:
        nonlocal first
        now = time.perf_counter()
        first = now if first is None else first
        found.messages += messages
        found.bytes += size
        # Where all came in one answer, it took since they were asked for.
        found.seconds = now - first or now - began
        step(messages)

    async def receive(consumer: PullConsumer) -> None:
        heard = time.perf_counter()
        while not _is_over(load, found, began):
            # Others may receive the last that are wanted.
            received = await consumer.poll(min(wait_s, _LOOK_S), _POLL_COUNT)
            raise_refusal(consumer)
            if not received:
                if time.perf_counter() - heard >= wait_s:
                    return
                continue
            heard = time.perf_counter()
            now_ms = time.time() * _MS
            for one in received:
                found.latencies.add(max(0.0, now_ms - one.born_ms))
            note(len(received), sum(len(one.body) for one in received))

    async with AsyncExitStack() as stack:
        consumers = [
            await stack.enter_async_context(
                cluster.pull_consumer(GROUP, consume_from=where, auto_commit=False)
            )
            for _ in range(load.clients)
        ]
        for one in consumers:
            await read_all(one, load.topic, Start(where))
        await _all(map(receive, consumers))
    return found


def _is_over(load: Load, found: Outcome, began: float) -> bool:
    if load.messages is not None and found.messages >= load.messages:
        return True
    return load.seconds is not None and time.perf_counter() - began >= load.seconds
