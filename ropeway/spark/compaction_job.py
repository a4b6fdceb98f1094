"""Compaction of a topic in a tier, as a job: the last message of each key, as files.

It does what a gateway's own compaction does, with as many machines as Spark has, and
makes the same files (storage/sealed/FORMAT.md):

1. Each task reads the keys of a range of offsets; the last offset of each key is one
   aggregation over digests and offsets alone.
2. Each task gets the offsets that stay in its range, reads the range again, and writes
   what stays. Messages are never sent from task to task.
3. The driver writes the manifests, which make the files count.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as sql

from ropeway.gateway.wire.compaction_rows import KEYED, ROW, describe
from ropeway.spark import segments as tiered
from ropeway.spark.compacted import prefix
from ropeway.spark.segments import TierError
from ropeway.spark.tier import TierRange, split
from ropeway.storage.compaction import manifest as manifests
from ropeway.storage.compaction import steps
from ropeway.storage.compaction.bits import Bits
from ropeway.storage.compaction.manifest import Manifest
from ropeway.storage.compaction.writer import new_segment
from ropeway.storage.sealed.layout import Whose

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ropeway.spark.segments import TierQueue
    from ropeway.storage.sealed.writer import SegmentWriter
    from ropeway.storage.tiered.api import Provider

HOUR_MS = 3_600_000
RANGE_OFFSETS = 500_000
"""Messages that one task reads."""
FILE_BYTES = 128 * 1024 * 1024
_GENERATION = 1
_OFFSET_AT = 20
"""Where a stored message has its offset. Source: MessageDecoder.java, 5.3.4."""
_STATE_AT = 16
_KEYS = pa.schema(
    [("number", pa.int32()), ("digest", pa.binary()), ("offset", pa.int64())]
)
_MADE = pa.schema(
    [
        *(("number", pa.int32()), ("name", pa.string()), ("first", pa.int64())),
        *(("records", pa.int64()), ("bytes", pa.int64())),
    ]
)


class Plan(NamedTuple):
    """What all tasks of one job are told."""

    target: str
    now_ms: int
    tombstone_ms: int
    keyless_ms: int | None
    file_bytes: int
    ranges: Sequence[TierRange]
    numbers: Sequence[int]
    """The partition of each range."""


class Compacted(NamedTuple):
    """What a job made of one partition."""

    topic: str
    number: int
    clean_end: int
    """Up to where the tier had messages."""
    records: int
    bytes: int
    files: int


def compact(
    spark: SparkSession,
    tier: str,
    topic: str,
    target: str,
    *,
    tombstone_ms: int = 24 * HOUR_MS,
    keyless_ms: int | None = None,
    now_ms: int | None = None,
    file_bytes: int = FILE_BYTES,
    range_offsets: int = RANGE_OFFSETS,
) -> list[Compacted]:
    """Write the last message of each key of a topic in a tier.

    Args:
        spark: Where it runs.
        tier: The URL of one broker's tier.
        topic: One that it has.
        target: The URL of a directory or of a folder of an object store, which has
            nothing of the topic yet.
        tombstone_ms: When a tombstone is due, from now on.
        keyless_ms: When a message without a key is due, from its storing on; None
            for never.
        now_ms: The time, in milliseconds since 1970; the machine's where it is None.
        file_bytes: How large a file grows.
        range_offsets: Messages that one task reads.

    Raises:
        TierError: The tier cannot be read, or the target cannot be written or has the
            topic.
    """
    queues = asyncio.run(_queues(tier, topic, target))
    ranges: list[TierRange] = []
    numbers: list[int] = []
    first_ranges: dict[int, tuple[int, int]] = {}
    for queue in queues:
        first_ranges[queue.number] = len(ranges), queue.begin
        ranges += split(tier, queue, queue.begin, queue.end, range_offsets)
        numbers += [queue.number] * (len(ranges) - len(numbers))
    plan = Plan(
        target,
        int(time.time() * 1000) if now_ms is None else now_ms,
        tombstone_ms,
        keyless_ms,
        file_bytes,
        ranges,
        numbers,
    )
    tasks = spark.range(0, len(ranges), 1, len(ranges))
    keys = tasks.mapInArrow(_keys_of(plan), _ddl(_KEYS))
    last = keys.groupBy("number", "digest").agg(sql.max("offset").alias("offset"))
    place = _range_of(first_ranges, range_offsets)
    # A range of which no key stays may have messages without one.
    stays = last.select(place.alias("range"), "offset").union(
        tasks.selectExpr("cast(id as int) range", "cast(-1 as bigint) offset")
    )
    made = _written(stays, plan).collect()
    return asyncio.run(_finish(target, topic, queues, made))


async def _queues(tier: str, topic: str, target: str) -> list[TierQueue]:
    async with tiered.opened(tier) as provider:
        queues = await tiered.queues(provider, topic, tiered.broker_of(tier))
        if not queues:
            raise TierError(f"{provider.label} has nothing of topic {topic!r}")
    async with tiered.opened(target) as provider:
        async for name, _ in provider.names(prefix(topic)):
            if name.endswith(f"/{manifests.NAME}"):
                raise TierError(
                    f"{provider.label} has {name} already; allowed: a target that has "
                    "nothing of the topic"
                )
    return queues


def _range_of(first_ranges: dict[int, tuple[int, int]], range_offsets: int) -> Any:
    """The range of an offset: those of a partition are equally long but the last."""
    first, begin = (
        sql.create_map(
            *(
                sql.lit(one)
                for number, both in first_ranges.items()
                for one in (number, both[at])
            )
        )
        for at in (0, 1)
    )
    within = sql.floor((sql.col("offset") - begin[sql.col("number")]) / range_offsets)
    return (first[sql.col("number")] + within).cast("int")


def _ddl(schema: pa.Schema) -> str:
    kinds = {"int32": "int", "int64": "bigint", "binary": "binary", "string": "string"}
    return ", ".join(f"{field.name} {kinds[str(field.type)]}" for field in schema)


def _keys_of(plan: Plan) -> Callable[[Iterator[Any]], Iterator[Any]]:
    # Spark sends this function itself, and of what it calls the names alone.
    return lambda batches: _keys(plan, batches)


def _keys(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Step 1 of a task: digests of keys and their offsets."""
    for batch in batches:
        for at in batch.column("id").to_pylist():
            one, number = plan.ranges[at], plan.numbers[at]
            for first, _, rows in _pieces(one):
                found = [
                    (number, digest, first + index)
                    for index, (_, _, _, state, digest) in enumerate(
                        ROW.iter_unpack(rows)
                    )
                    if state & KEYED and one.begin <= first + index < one.end
                ]
                yield pa.RecordBatch.from_arrays(_columns(found, _KEYS), schema=_KEYS)


def _columns(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> list[pa.Array]:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return [
        pa.array(column, field.type)
        for column, field in zip(columns, schema, strict=True)
    ]


def _written(stays: DataFrame, plan: Plan) -> DataFrame:
    """Step 2: each range's files."""
    # Told how many, Spark does not put tasks together that get few offsets: what they
    # read is much more. The function is as in `_keys_of`.
    parted = stays.repartition(len(plan.ranges), "range")
    return parted.groupBy("range").applyInArrow(
        lambda table: _files(plan, table), _ddl(_MADE)
    )


def _files(plan: Plan, table: pa.Table) -> pa.Table:
    at = table.column("range")[0].as_py()
    rows = asyncio.run(_write(plan, at, table.column("offset").to_pylist()))
    return pa.Table.from_arrays(_columns(rows, _MADE), schema=_MADE)


def _pieces(one: TierRange) -> Iterator[tuple[int, bytes, bytes]]:
    """Messages of a range, with the offset of the first and their rows."""
    with asyncio.Runner() as runner:
        pieces = _read(one)

        async def step() -> tuple[int, bytes, bytes] | None:
            return await anext(pieces, None)

        try:
            while (found := runner.run(step())) is not None:
                yield found
        finally:
            runner.run(pieces.aclose())


async def _read(one: TierRange) -> AsyncGenerator[tuple[int, bytes, bytes], None]:
    async with tiered.opened(one.url) as provider:
        async for data in tiered.read(
            provider, one.segments, one.begin, one.end, None, must_be_whole=True
        ):
            first = int.from_bytes(data[_OFFSET_AT : _OFFSET_AT + 8], "big")
            yield first, data, describe(data)


async def _write(
    plan: Plan, at: int, offsets: Sequence[int]
) -> list[tuple[int, str, int, int, int]]:
    """The files of what stays of a range, as `_MADE` has them."""
    one, number = plan.ranges[at], plan.numbers[at]
    where = f"{prefix(one.queue.topic)}{number}/"
    stays = Bits(one.begin)
    for offset in offsets:
        if offset >= 0:
            stays.set(offset)
    bits = stays.cover(one.end)
    made = []
    segment = new_segment(Whose(one.queue.topic, number))
    async with tiered.opened(plan.target) as target:
        async for first, data, rows in _read(one):
            for index, state in enumerate(rows[_STATE_AT :: ROW.size]):
                if not state & KEYED and one.begin <= first + index < one.end:
                    stays.set(first + index)
            segment.add(
                *steps.lay_out(
                    data,
                    rows,
                    first,
                    bits,
                    one.begin,
                    plan.now_ms,
                    -1 if plan.keyless_ms is None else plan.keyless_ms,
                    plan.tombstone_ms,
                )
            )
            if segment.waiting_bytes >= plan.file_bytes:
                made.append((number, *await _put(target, where, segment)))
                segment = new_segment(Whose(one.queue.topic, number))
        if not segment.is_empty:
            made.append((number, *await _put(target, where, segment)))
    return made


async def _put(
    target: Provider, where: str, segment: SegmentWriter
) -> tuple[str, int, int, int]:
    """Put a file; its name, first offset, records and bytes."""
    data = segment.cut(everything=True)
    about, index = segment.seal()
    name = f"{about.base_offset:020}-{_GENERATION}"
    await target.put(f"{where}{name}.data", data)
    await target.put(f"{where}{name}.index", [index])
    return name, about.base_offset, about.records, about.data_bytes


async def _finish(
    target: str, topic: str, queues: Sequence[TierQueue], made: Sequence[Any]
) -> list[Compacted]:
    """Step 3: manifests, of partitions that have lost everything, too."""
    done = []
    async with tiered.opened(target) as provider:
        for queue in queues:
            files = sorted(
                (one for one in made if one["number"] == queue.number),
                key=lambda one: one["first"],
            )
            manifest = Manifest(
                topic,
                queue.number,
                queue.end,
                _GENERATION,
                tuple(one["name"] for one in files),
            )
            where = f"{prefix(topic)}{queue.number}/{manifests.NAME}"
            await provider.put(where, [manifests.dump(manifest)])
            done.append(
                Compacted(
                    topic,
                    queue.number,
                    queue.end,
                    sum(one["records"] for one in files),
                    sum(one["bytes"] for one in files),
                    len(files),
                )
            )
    return done
