"""Messages that travel with the records of a job, past its steps, to the same sink.

State and offsets leave in the batch of the results that they belong to, and that is
committed as a whole. Among records they are rows whose key begins with a byte that no
key of a record begins with.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ropeway.streams.records import TIME

if TYPE_CHECKING:
    from collections.abc import Iterable

_MARK = b"\x00"
"""Pickles begin with 0x80."""

TRACKED = "value binary, timestamp timestamp, broker string, queue int, offset bigint"
"""The columns of a source whose offsets travel along."""


def row_key(topic: str, key: str) -> bytes:
    """What stands in the column of keys for a message to a topic."""
    return _MARK + f"{topic}\0{key}".encode()


def is_carried(key: bytes) -> bool:
    """Whether a key is that of a message on its way."""
    return key.startswith(_MARK)


def newest(bodies: Iterable[bytes]) -> bytes:
    """The one of several bodies of one key that counts: numbers only grow."""
    first, *others = bodies
    return max(first, *others, key=int) if others else first


def told(*parts: Any) -> str:
    """A message's key of several parts."""
    return json.dumps(parts)


def split(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Records as an earlier operator left them, and what travels with them."""
    is_one = pc.fill_null(pc.starts_with(batch.column("key"), pattern=_MARK), False)
    return batch.filter(pc.invert(is_one)), batch.filter(is_one)


class Tracking:
    """Adds to messages that a source reads, how far it has come.

    Args:
        topic: Where offsets go.
        query: Whose they are.
        source: The step that reads.
        source_topic: What it reads.
    """

    def __init__(self, topic: str, query: str, source: str, source_topic: str) -> None:
        self._topic = topic
        self._parts = (query, source, source_topic)

    def __call__(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The messages, and one for each of their queues, of where it goes on."""
        last = (
            pa.Table.from_batches([batch.select(["broker", "queue", "offset"])])
            .group_by(["broker", "queue"], use_threads=False)
            .aggregate([("offset", "max")])
            .to_pylist()
        )
        keys = [
            row_key(self._topic, told(*self._parts, f"{one['broker']}:{one['queue']}"))
            for one in last
        ]
        return batch, _rows(keys, [b"%d" % (one["offset_max"] + 1) for one in last])


def _rows(keys: list[bytes], bodies: list[bytes]) -> pa.RecordBatch:
    """Rows among records; of the earliest time, which moves no watermark."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array(keys, pa.binary()),
            pa.array(bodies, pa.binary()),
            pa.array([0] * len(keys), TIME),
        ],
        names=["key", "value", "ts"],
    )


def to_messages(rows: pa.RecordBatch) -> pa.RecordBatch:
    """What the sink sends; one without a body is a tombstone."""
    topics, keys = [], []
    for one in rows.column("key").to_pylist():
        topic, _, key = one[len(_MARK) :].decode().partition("\0")
        topics.append(topic)
        keys.append(key)
    bodies = [one or None for one in rows.column("value").to_pylist()]
    named = pa.array(keys, pa.string())
    return pa.RecordBatch.from_arrays(
        [pa.array(bodies, pa.binary()), named, pa.array(topics, pa.string()), named],
        names=["value", "sharding_key", "topic", "key"],
    )
