"""Compaction as a job: what it makes is what a gateway's own compaction makes."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from ropeway.gateway.node.message_keys import MessageKeys
from ropeway.spark.compaction_job import HOUR_MS, Compacted, compact
from ropeway.spark.segments import TierError
from ropeway.storage.api import Record
from ropeway.storage.compaction import manifest
from ropeway.storage.compaction.compaction_config import CompactionSettings
from ropeway.storage.compaction.log import CompactedLog
from ropeway.storage.compaction.round import CompactionContext
from ropeway.storage.file import FileLogSettings, open_log
from tests.contracts.log import begin
from tests.ropeway.spark.tiers import TOPIC, Sent, make, stored

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from ropeway.storage.compaction.partition import CompactedPartition

pytestmark = [pytest.mark.slow, pytest.mark.jvm]

NOW_MS = 10_000_000
KEYLESS_MS = 9_000_000
NUMBER, OTHER = 7, 8

SENT = [
    Sent(
        "" if at % 17 == 0 else f"{at}-{'x' * (at % 50)}",
        "odd" if at % 2 else "even",
        "" if at % 13 == 0 else f"key {at * 7 % 40}",
        500_000 + at * 10_000,
    )
    for at in range(200)
]
"""Keys, messages without one, tombstones; some of these are due."""


def compacted(directory: Path) -> CompactedLog:
    inner = open_log(directory / "log", FileLogSettings(retention_ms=None))
    settings = CompactionSettings(
        min_lag_ms=0,
        tombstone_ms=HOUR_MS,
        keyless_ms=KEYLESS_MS,
        share=1.0,
        bytes_per_s=None,
    )
    context = CompactionContext(settings, MessageKeys(), lambda: NOW_MS)
    log = CompactedLog(inner, directory / "compaction", inner.need, context)
    log.keep_last(TOPIC, compacted=True)
    return log


async def read_all(partition: CompactedPartition) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    offset = 0
    while offset < partition.end:
        chunk = await partition.read(offset, 1, 1 << 20)
        if chunk.records:
            found[chunk.next_offset - 1] = bytes(chunk.data[0])
        offset = chunk.next_offset
    return found


async def fill(directory: Path) -> None:
    """A log with the messages, which is not compacted yet."""
    log = compacted(directory)
    await log.create(TOPIC, [NUMBER])
    partition = log.partition(TOPIC, NUMBER)
    for at, one in enumerate(SENT):
        record = Record(stored(one, 1, at), 0, ())
        await begin(partition, record, store_ms=one.store_ms)
    await log.close()


async def opened(directory: Path, *, compact_now: bool) -> dict[int, bytes]:
    log = compacted(directory)
    try:
        if compact_now:
            await log.compact(TOPIC)
        partition = log.partition(TOPIC, NUMBER)
        assert partition.clean.now.clean_end == len(SENT)
        return await read_all(partition)
    finally:
        await log.close()


def files(directory: Path) -> dict[str, bytes]:
    return {
        one.name: one.read_bytes()
        for one in (directory / TOPIC / str(NUMBER)).iterdir()
    }


def test_it_makes_the_files_that_a_gateway_makes(
    spark: SparkSession, tmp_path: Path
) -> None:
    asyncio.run(fill(tmp_path / "node"))
    shutil.copytree(tmp_path / "node", tmp_path / "other")
    tier = (tmp_path / "tier" / "broker-0").as_uri()
    make(tier, SENT, a_segment=30, number=NUMBER)
    make(tier, [Sent("a", "", "k")] * 3, number=OTHER, base=4)

    def job(target: str, **more: int) -> list[Compacted]:
        return compact(
            spark,
            tier,
            TOPIC,
            (tmp_path / target).as_uri(),
            tombstone_ms=HOUR_MS,
            keyless_ms=KEYLESS_MS,
            now_ms=NOW_MS,
            **more,
        )

    in_process = asyncio.run(opened(tmp_path / "node", compact_now=True))
    whole, small = job("whole"), job("small", range_offsets=32, file_bytes=2000)
    assert [one[:4] for one in whole] == [one[:4] for one in small]
    assert whole[0][:4] == (TOPIC, NUMBER, len(SENT), len(in_process))
    assert whole[1][:4] == (TOPIC, OTHER, 7, 1)
    assert small[0].files > whole[0].files == 1
    # One task makes the very bytes, but for the log's name for the partition.
    made, by_node = files(tmp_path / "whole"), files(tmp_path / "node" / "compaction")
    assert made.keys() == by_node.keys()
    assert {name for name in made if made[name] != by_node[name]} == {manifest.NAME}
    of_job, of_node = (
        manifest.load(one / TOPIC / str(NUMBER) / manifest.NAME)
        for one in (tmp_path / "whole", tmp_path / "node" / "compaction")
    )
    assert of_node.identity
    assert of_job == structs.replace(of_node, identity=0)
    # Several make other files of the same messages; a node takes them as its own.
    theirs = tmp_path / "other" / "compaction" / TOPIC / str(NUMBER)
    shutil.copytree(
        tmp_path / "small" / TOPIC / str(NUMBER), theirs, dirs_exist_ok=True
    )
    assert asyncio.run(opened(tmp_path / "other", compact_now=False)) == in_process

    with pytest.raises(TierError, match="manifest already; allowed: a target that has"):
        job("whole")
    with pytest.raises(TierError, match="has nothing of topic 'none'"):
        compact(spark, tier, "none", (tmp_path / "whole").as_uri())
