"""A partition's state decides what its callers get; memory needs no Pulsar."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ropeway.storage.api import (
    Filter,
    LogUnavailableError,
    NoSuchPartitionError,
    NotReadyError,
    OutcomeUnknownError,
)
from ropeway.storage.pulsar.appender import Appender, Traffic
from ropeway.storage.pulsar.partition import PartitionContext, PulsarPartition
from ropeway.storage.pulsar.pulsar_log_config import PulsarLogSettings
from ropeway.storage.pulsar.tail import Tail
from ropeway.storage.pulsar.topic_names import PulsarName
from tests.contracts.log import begin, record, texts
from tests.storage.pulsar.test_appender import Broker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def run(
    test: Callable[[PulsarPartition, Broker], Awaitable[None]], **more: Any
) -> None:
    async def main() -> None:
        await test(*open_one(**more))

    asyncio.run(main())


def open_one(first: int = 0, end: int = 0) -> tuple[PulsarPartition, Broker]:
    """A partition whose producer is a fake, and that can read from memory only."""
    nothing: Any = None
    partition = PulsarPartition(
        "orders",
        3,
        PulsarName("public", "default", "orders"),
        PartitionContext(Tail(1 << 20), nothing, nothing, 64),
    )
    broker: Any = Broker()
    broker.max_message_bytes = 1 << 20
    settings = PulsarLogSettings(packs_in_flight=4)
    appender = Appender(partition, broker, 0, end, settings, Traffic(1 << 20))
    partition.open(appender, first, end, -1)
    return partition, broker


def test_what_was_acknowledged_is_read_from_memory_across_packs() -> None:
    async def test(partition: PulsarPartition, broker: Broker) -> None:
        for number in range(4):
            names = [f"{number}.{i}" for i in range(3)]
            begin(partition, *[record(name, tag_hash=number) for name in names])
            await asyncio.sleep(0)
        broker.acknowledge(3)
        assert (partition.first, partition.end, partition.next_offset) == (10, 19, 22)
        chunk = partition.read_now(11, 5, 1 << 20)
        assert chunk is not None
        assert texts(chunk) == ["0.1", "0.2", "1.0", "1.1", "1.2"]
        assert len(chunk.data) == 2
        chunk = partition.read_now(10, 9, 1 << 20, Filter(tag_hashes={2}))
        assert chunk is not None
        assert (texts(chunk), chunk.next_offset) == (["2.0", "2.1", "2.2"], 19)
        chunk = partition.read_now(19, 9, 1 << 20)
        assert chunk is not None
        assert (chunk.records, chunk.next_offset) == (0, 19)

    run(test, first=10, end=10)


def test_what_is_not_in_memory_is_for_a_read_that_waits() -> None:
    async def test(partition: PulsarPartition, broker: Broker) -> None:
        begin(partition, record("a"))
        await asyncio.sleep(0)
        broker.acknowledge()
        assert partition.read_now(0, 9, 99) is None
        assert partition.read_now(7, 9, 99) is not None

    run(test, end=7)


def test_watchers_hear_of_each_pack_once() -> None:
    async def test(partition: PulsarPartition, broker: Broker) -> None:
        ends: list[int] = []
        partition.watch(lambda: ends.append(partition.end))
        for _ in range(2):
            begin(partition, record("a"))
            begin(partition, record("b"))
            await asyncio.sleep(0)
        broker.acknowledge(2)
        assert ends == [2, 4]

    run(test)


def test_who_was_fenced_serves_nothing_until_it_is_open_again() -> None:
    async def test(partition: PulsarPartition, broker: Broker) -> None:
        future = begin(partition, record("a"))
        await asyncio.sleep(0)
        partition.shut("taken over")
        with pytest.raises(OutcomeUnknownError, match="taken over"):
            await future
        for use in (
            lambda: begin(partition, record("b")),
            lambda: partition.read_now(0, 1, 1),
            lambda: partition.end,
        ):
            with pytest.raises(NotReadyError, match="orders"):
                use()
        partition.watch(print)
        partition.gone = True
        with pytest.raises(NoSuchPartitionError, match="partition 3 of topic orders"):
            partition.read_now(0, 1, 1)
        with pytest.raises(NoSuchPartitionError):
            partition.watch(print)
        partition.closed = True
        with pytest.raises(LogUnavailableError, match="closed"):
            partition.read_now(0, 1, 1)

    run(test)


def test_memory_of_an_earlier_ownership_is_not_used() -> None:
    """Another node may have appended in between."""

    async def test(partition: PulsarPartition, broker: Broker) -> None:
        begin(partition, record("a"))
        await asyncio.sleep(0)
        broker.acknowledge()
        appender = partition.appender
        assert appender is not None
        partition.shut("taken over")
        partition.open(appender, 0, 5, -1)
        assert partition.read_now(0, 9, 99) is None

    run(test)


def test_trimming_never_goes_back_nor_beyond_the_end() -> None:
    async def test(partition: PulsarPartition, _: Broker) -> None:
        partition.trim(5, 1)
        assert partition.first == 5
        partition.trim(3, 1)
        assert partition.first == 5
        partition.trim(99, 1)
        assert partition.first == 9

    run(test, end=9)
