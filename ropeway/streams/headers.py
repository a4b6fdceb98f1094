"""What messages have besides their bodies: Data.header of RIP-58."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ropeway.gateway.wire import properties as names
from ropeway.streams.records import MICROSECONDS, from_messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ropeway.streams.records import Record

COLUMNS = "born_timestamp timestamp, properties map<string,string>"
"""Of a source, besides those of all."""
SENT = "key string, tag string, properties map<string,string>"
"""Of a sink, likewise."""
_MAP = pa.map_(pa.string(), pa.string())
_NONE: Mapping[str, str] = {}


class Header(NamedTuple):
    """What a message has besides its body."""

    key: str | None = None
    """What RocketMQ calls KEYS; a compacted topic keeps the last message of each."""
    tag: str | None = None
    properties: Mapping[str, str] = _NONE
    """All of them, of a message that was read; of one that is sent, further ones."""
    store_ms: int | None = None
    """When it was stored, in milliseconds since 1970. Sinks pass it over."""
    born_ms: int | None = None
    """When it was sent. Sinks pass it over."""


class Body(bytes):
    """The body of a message whose header goes with it to the deserializer."""

    header: Header


def from_messages_with_headers(batch: pa.RecordBatch) -> Iterator[Record]:
    """Messages as records, as `records.from_messages` has them."""
    of_each = batch.column("properties").to_pylist()
    born = batch.column("born_timestamp").cast(pa.int64()).to_pylist()
    for record, pairs, born_us in zip(from_messages(batch), of_each, born, strict=True):
        key, value, time_ms = record
        properties = dict(pairs)
        body = Body(value)
        body.header = Header(
            properties.get(names.KEYS),
            properties.get(names.TAGS),
            properties,
            time_ms,
            born_us // MICROSECONDS,
        )
        yield key, body, time_ms


def columns(found: list[Header]) -> list[Any]:
    """The columns of messages that are sent, in the order of `SENT`."""
    return [
        pa.array([one.key for one in found], pa.string()),
        pa.array([one.tag for one in found], pa.string()),
        pa.array([[*one.properties.items()] for one in found], _MAP),
    ]
