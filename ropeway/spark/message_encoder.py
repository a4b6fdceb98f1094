"""Rows on their way out: Arrow batches become messages in wire form, queue by queue."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from ropeway.gateway.wire import properties as names
from ropeway.gateway.wire.batch import BatchEntry
from ropeway.gateway.wire.properties import tag_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ropeway.client import MessageQueue

_PARCEL_BYTES = 512 * 1024
_PARCEL_COUNT = 2000
_FRONT_BYTES = 32
"""What an entry has besides body and properties, about."""
_PREFIX_BYTES = 12

TYPES: Mapping[str, tuple[str, ...]] = {
    "value": ("binary", "string"),
    "topic": ("string",),
    "tag": ("string",),
    "key": ("string",),
    "sharding_key": ("string",),
    "queue": ("int", "bigint"),
    "delay_ms": ("int", "bigint"),
    "properties": ("map<string,string>",),
}
"""The columns that a table to be sent may have, with their types."""

_PROPERTIES = {
    "tag": names.TAGS,
    "key": names.KEYS,
    "sharding_key": names.SHARDING_KEY,
}


class Parcel(NamedTuple):
    """Messages of one queue that are sent together."""

    queue: MessageQueue
    entries: list[BatchEntry]
    is_alone: bool
    """Whether it is one message that is in no batch: a large one, or a delayed one."""


class _Open:
    """A parcel that is not full yet."""

    def __init__(self) -> None:
        self.entries: list[BatchEntry] = []
        self.size_bytes = 0

    def add(self, entry: BatchEntry) -> bool:
        """Add a message; returns whether the parcel is full."""
        self.entries.append(entry)
        self.size_bytes += len(entry.body) + len(entry.properties) + _FRONT_BYTES
        return self.size_bytes > _PARCEL_BYTES or len(self.entries) >= _PARCEL_COUNT


class Packer:
    """Packs rows into parcels.

    A row goes to the queue of its column `queue`, else to that of its `sharding_key`,
    else to one that changes with each parcel. Each gets a unique key that another try
    of the same task gives it, too.

    Args:
        queues: Tells the queues of a topic that can be written to, sorted; asked once
            for each topic.
        topic: For rows that name none; None where all do.
        identity: Names the task, the same for all its tries.
        longest_bytes: What a body may have.
    """

    def __init__(
        self,
        queues: Callable[[str], Sequence[MessageQueue]],
        topic: str | None,
        identity: str,
        longest_bytes: int,
    ) -> None:
        self._longest_bytes = longest_bytes
        self._ask_queues = queues
        self._queues: dict[str, Sequence[MessageQueue]] = {}
        self._topic = topic
        digest = hashlib.blake2b(identity.encode(), digest_size=_PREFIX_BYTES)
        self._prefix = digest.hexdigest().upper()
        self._turn = digest.digest()[0]
        self._rows = 0
        self._open: dict[MessageQueue, _Open] = {}

    def pack(self, batch: pa.RecordBatch) -> Iterator[Parcel]:
        """Take rows in; parcels come out when they are full.

        Raises:
            ValueError: A row cannot be a message; says which and why.
        """
        columns = [batch.column(name).to_pylist() for name in batch.schema.names]
        for values in zip(*columns, strict=True):
            row = dict(zip(batch.schema.names, values, strict=True))
            queue = self._queue(row)
            entry = BatchEntry(0, self._body(row), self._text(row))
            self._rows += 1
            is_large = len(entry.body) > _PARCEL_BYTES
            if is_large and queue in self._open:
                yield Parcel(queue, self._open.pop(queue).entries, is_alone=False)
            if is_large or row.get("delay_ms"):
                yield Parcel(queue, [entry], is_alone=True)
            elif self._open.setdefault(queue, _Open()).add(entry):
                yield Parcel(queue, self._open.pop(queue).entries, is_alone=False)
                self._turn += 1

    def rest(self) -> Iterator[Parcel]:
        """What is left when there are no more rows."""
        while self._open:
            queue, parcel = self._open.popitem()
            yield Parcel(queue, parcel.entries, is_alone=False)

    def _queue(self, row: Mapping[str, Any]) -> MessageQueue:
        topic: str | None = row.get("topic") or self._topic
        if not topic:
            raise self._wrong("topic", "null", "a name, or option topic for all rows")
        queues = self._queues.get(topic)
        if queues is None:
            queues = self._queues[topic] = self._ask_queues(topic)
        number: int | None = row.get("queue")
        if number is not None:
            if not 0 <= number < len(queues):
                raise self._wrong("queue", str(number), f"0 to {len(queues) - 1}")
            return queues[number]
        if (sharding_key := row.get("sharding_key")) is not None:
            # As Java's SelectMessageQueueByHash does.
            return queues[abs(tag_hash(sharding_key)) % len(queues)]
        return queues[self._turn % len(queues)]

    def _body(self, row: Mapping[str, Any]) -> bytes:
        value = row["value"]
        if value is None and row.get("key"):
            # A tombstone: it takes its key out of a compacted topic.
            return b""
        if not value:
            raise self._wrong(
                "value", repr(value), "1 byte or more, or null for a key to go"
            )
        body = value.encode() if isinstance(value, str) else value
        if len(body) > self._longest_bytes:
            raise self._wrong(
                "value", f"{len(body)} bytes", f"up to {self._longest_bytes} bytes"
            )
        return body

    def _text(self, row: Mapping[str, Any]) -> str:
        pairs = {names.WAIT: "true"}
        if own := row.get("properties"):
            pairs.update({name: value for name, value in own if value is not None})
        for column, name in _PROPERTIES.items():
            if (value := row.get(column)) is not None:
                pairs[name] = value
        delay_ms = row.get("delay_ms")
        if delay_ms is not None and delay_ms < 0:
            raise self._wrong("delay_ms", str(delay_ms), "from 0")
        if delay_ms:
            pairs[names.TIMER_DELAY_MS] = str(delay_ms)
        pairs.setdefault(names.UNIQ_KEY, f"{self._prefix}{self._rows:08X}")
        text = names.dump(pairs)
        if text.count(names.NAME_END) != len(pairs) or text.count(
            names.VALUE_END
        ) != len(pairs):
            raise self._wrong("properties", repr(pairs), "text without 0x01 and 0x02")
        return text

    def _wrong(self, column: str, came: str, allowed: str) -> ValueError:
        return ValueError(
            f"column {column!r} of row {self._rows} of this task is {came:.200}; "
            f"allowed: {allowed}"
        )
