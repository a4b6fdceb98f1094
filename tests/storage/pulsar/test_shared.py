"""Partitions that native clients write to, too, on a real Pulsar."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import psutil
import pytest

from ropeway.storage.api import (
    LogDamagedError,
    LogUnavailableError,
    OutcomeUnknownError,
)
from ropeway.storage.pulsar import open_log
from ropeway.storage.pulsar.send_entry import EntryMetadata
from tests.contracts.log import TOPIC, LogContract, begin, record, texts
from tests.storage.pulsar.logs import (
    OUTCOME_S,
    PATIENCE_S,
    settings_for,
    truncate,
    until,
)
from tests.storage.pulsar.sharing import (
    SharedLog,
    SharedPartition,
    Verbatim,
    open_shared_log,
)
from tests.system.process import stopped
from tests.system.pulsar import Pulsar
from tests.system.pulsar_client import client_of, on_uvloop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

numbers = itertools.count(1)
pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.mark.parametrize("tail_bytes", [0, 1 << 20], ids=["pulsar", "memory"])
class TestSharedLog(LogContract):
    @pytest.fixture
    def open_log(
        self, counting_pulsar: Pulsar, tail_bytes: int
    ) -> Callable[[], Awaitable[SharedLog]]:
        namespace = f"public/contract-{next(numbers)}"
        settings = settings_for(counting_pulsar, namespace, tail_bytes=tail_bytes)
        converter = Verbatim()

        async def again() -> SharedLog:
            return await open_shared_log(settings, converter)

        return again


async def opened_partition(log: SharedLog) -> SharedPartition:
    await log.create(TOPIC, [0])
    partition = log.partition(TOPIC, 0)
    await log.ready(TOPIC)
    return partition


@on_uvloop()
async def test_offsets_go_on_when_all_was_truncated(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    settings, converter = settings_for(pulsar, pulsar_namespace), Verbatim()
    log = await open_shared_log(settings, converter)
    try:
        partition = await opened_partition(log)
        assert [await begin(partition, record(str(n))) for n in range(5)] == [*range(5)]
    finally:
        await log.close()
    truncate(pulsar, pulsar_namespace)
    log = await open_shared_log(settings, converter)
    try:
        partition = await opened_partition(log)
        assert (partition.first, partition.end) == (5, 5)
        assert await begin(partition, record("next")) == 5
        assert texts(await partition.read(0, 10, 1000)) == ["next"]
    finally:
        await log.close()


@on_uvloop()
async def test_several_nodes_may_write_at_once(
    pulsar: Pulsar, pulsar_namespace: str
) -> None:
    """There is no sole writer, so an old owner that goes on does no harm."""
    settings, converter = settings_for(pulsar, pulsar_namespace), Verbatim()
    logs = [await open_shared_log(settings, converter) for _ in range(2)]
    try:
        partitions = [await opened_partition(log) for log in logs]
        waits = [
            begin(
                partitions[n % 2], *[record(f"{n} {step}") for step in range(n % 3 + 1)]
            )
            for n in range(100)
        ]
        offsets = await asyncio.gather(*waits)
        await until(lambda: len({one.end for one in partitions}) == 1)
        read = texts(await partitions[0].read(0, 1000, 1 << 20))
        assert read == texts(await partitions[1].read(0, 1000, 1 << 20))
        assert len(read) == sum(n % 3 + 1 for n in range(100)) == partitions[0].end
        for n, offset in enumerate(offsets):
            assert read[offset : offset + n % 3 + 1] == [
                f"{n} {step}" for step in range(n % 3 + 1)
            ]
        for of_node in (offsets[::2], offsets[1::2]):
            assert of_node == sorted(of_node)
    finally:
        for log in logs:
            await log.close()


@on_uvloop(limit_s=PATIENCE_S)
async def test_a_silent_pulsar_leaves_the_outcome_unknown_and_order_intact(
    mortal_pulsar: Pulsar,
) -> None:
    settings = settings_for(
        mortal_pulsar, "public/silent", outcome_s=OUTCOME_S, wait_ms=300
    )
    log = await open_shared_log(settings, Verbatim())
    partition = await opened_partition(log)
    assert await begin(partition, record("before")) == 0
    with stopped(mortal_pulsar.pid):
        process = psutil.Process(mortal_pulsar.pid)
        await until(lambda: process.status() == psutil.STATUS_STOPPED)
        late = begin(partition, record("late"))
        with pytest.raises(OutcomeUnknownError, match="in time"):
            await late
        with pytest.raises(LogUnavailableError, match="unknown"):
            begin(partition, record("refused"))
    await until(lambda: partition.end == 2)
    assert await begin(partition, record("after")) == 2
    assert texts(await partition.read(0, 10, 1000)) == ["before", "late", "after"]
    await log.close()


@on_uvloop(limit_s=PATIENCE_S)
async def test_entries_from_before_brokers_counted_are_refused_with_the_setting(
    tmp_path: Path,
) -> None:
    server = Pulsar(tmp_path, settings={"brokerEntryMetadataInterceptors": ""})
    counting = Pulsar(tmp_path, metadata_url=None)
    try:
        server.start()
        settings = settings_for(server, "public/older")
        log = await open_log(settings, prepare=True)
        await log.create(TOPIC, [0])
        async with client_of(server) as client:
            topic = f"persistent://public/older/{TOPIC}-partition-0"
            producer = await client.producer(topic, "native", lost=pytest.fail)
            producer.send([b"old"], 0, lambda *_: None, EntryMetadata(1))
            await producer.confirm()
        await log.close()
        server.stop()
        counting.start()
        settings = settings_for(counting, "public/older")
        shared = await open_shared_log(settings, Verbatim())
        shared.partition(TOPIC, 0)
        with pytest.raises(LogDamagedError, match="AppendIndexMetadataInterceptor"):
            await shared.ready(TOPIC)
        await shared.close()
    finally:
        server.kill()
        counting.kill()
