"""The columns of a topic in Spark, and how messages become Arrow batches of them.

Only the columns that are asked for are made: a stream of values alone never takes
properties apart.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ropeway.gateway.wire import properties
from ropeway.spark.pairs import read_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ropeway.client.message import MessageQueue
    from ropeway.spark.frames import Frames
    from ropeway.spark.pairs import Pairs

_MILLISECONDS = pa.timestamp("ms", tz="UTC")
_TIMESTAMP = pa.timestamp("us", tz="UTC")
TYPES: dict[str, DataType] = {
    "value": BinaryType(),
    "key": StringType(),
    "tag": StringType(),
    "sharding_key": StringType(),
    "topic": StringType(),
    "broker": StringType(),
    "queue": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "born_timestamp": TimestampType(),
    "msg_id": StringType(),
    "properties": MapType(StringType(), StringType()),
    "headers": ArrayType(
        StructType().add("key", StringType()).add("value", BinaryType())
    ),
}
"""Every column that a topic has: `key` is what RocketMQ calls KEYS, and `headers` are
the properties as Spark's Kafka source has a record's headers."""

_DEFAULT = ("value", "key", "tag", "topic", "broker", "queue", "offset", "timestamp")


def default_schema(*more: str) -> StructType:
    """The columns that a reader gets who asks for none, and more."""
    return StructType([StructField(name, TYPES[name]) for name in (*_DEFAULT, *more)])


def check_schema(schema: StructType) -> None:
    """Refuse columns that a topic does not have.

    Raises:
        ValueError: Names the column, what came, and what is allowed.
    """
    for field in schema.fields:
        if field.name not in TYPES:
            raise ValueError(
                f"column {field.name!r} is asked for; allowed: {', '.join(TYPES)}"
            )
        if field.dataType != TYPES[field.name]:
            raise ValueError(
                f"column {field.name!r} is asked for as "
                f"{field.dataType.simpleString()}; allowed: "
                f"{TYPES[field.name].simpleString()}"
            )


def to_batch(
    found: Frames,
    queue: MessageQueue,
    wanted: Sequence[str],
    conditions: Mapping[str, Collection[str] | None] | None = None,
) -> pa.RecordBatch:
    """Messages as an Arrow batch.

    Args:
        found: The messages.
        queue: Where they are from.
        wanted: The names of the columns.
        conditions: Only messages where a column has one of some values; None for any.
    """
    messages = _Messages(found, queue)
    batch = pa.RecordBatch.from_arrays(
        [_ARRAYS[name](messages) for name in wanted], names=list(wanted)
    )
    is_wanted = None
    for name, values in (conditions or {}).items():
        if values is not None:
            allowed = pa.array(sorted(values), pa.string())
            has_one = pc.is_in(_ARRAYS[name](messages), allowed)
            is_wanted = has_one if is_wanted is None else pc.and_(is_wanted, has_one)
    return batch if is_wanted is None else batch.filter(is_wanted)


class _Messages:
    """Messages of a queue, whose properties are taken apart once, if at all."""

    def __init__(self, found: Frames, queue: MessageQueue) -> None:
        self.found = found
        self.queue = queue

    @cached_property
    def pairs(self) -> Pairs:
        return read_pairs(self.found.properties)


def _property(name: str) -> Callable[[_Messages], Any]:
    return lambda messages: messages.pairs.of(name)


def _same(
    value: Callable[[MessageQueue], str | int], kind: pa.DataType
) -> Callable[[_Messages], Any]:
    return lambda messages: pa.repeat(
        pa.scalar(value(messages.queue), kind), len(messages.found.offsets)
    )


def _times(times_ms: Any) -> Any:
    return pa.array(times_ms, _MILLISECONDS).cast(_TIMESTAMP)


_MAPS = to_arrow_type(TYPES["properties"])
_HEADERS = to_arrow_type(TYPES["headers"])


def _maps(messages: _Messages) -> Any:
    offsets, names, values, _ = messages.pairs
    return pa.MapArray.from_arrays(pa.array(offsets), names, values, type=_MAPS)


def _headers(messages: _Messages) -> Any:
    offsets, names, values, _ = messages.pairs
    structs = pa.StructArray.from_arrays(
        [names, values.cast(pa.binary())],
        fields=list(_HEADERS.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(offsets), structs, type=_HEADERS)


_ARRAYS: dict[str, Callable[[_Messages], Any]] = {
    "value": lambda messages: messages.found.bodies,
    "key": _property(properties.KEYS),
    "tag": _property(properties.TAGS),
    "sharding_key": _property(properties.SHARDING_KEY),
    "topic": _same(lambda queue: queue.topic, pa.string()),
    "broker": _same(lambda queue: queue.broker_name, pa.string()),
    "queue": _same(lambda queue: queue.queue_id, pa.int32()),
    "offset": lambda messages: pa.array(messages.found.offsets, pa.int64()),
    "timestamp": lambda messages: _times(messages.found.store_ms),
    "born_timestamp": lambda messages: _times(messages.found.born_ms),
    "msg_id": _property(properties.UNIQ_KEY),
    "properties": _maps,
    "headers": _headers,
}
