"""Rows on their way out: Arrow batches become messages in wire form, queue by queue."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ropeway.gateway.wire.properties import tag_hash
from ropeway.spark.wire_entries import Columns, Entries, as_one, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ropeway.client import MessageQueue

_PARCEL_BYTES = 512 * 1024
_PARCEL_COUNT = 2000
_PREFIX_BYTES = 12
_ANY = -1
"""The queue of rows that may go to any."""

TYPES: Mapping[str, tuple[str, ...]] = {
    "value": ("binary", "string"),
    "topic": ("string",),
    "tag": ("string",),
    "key": ("string",),
    "sharding_key": ("string",),
    "queue": ("int", "bigint"),
    "delay_ms": ("int", "bigint"),
    "properties": ("map<string,string>",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
"""The columns that a table to be sent may have, with their types."""


class Parcel(NamedTuple):
    """Messages of one queue that are sent together."""

    queue: MessageQueue
    data: bytes
    """As `encode_batch` makes it."""
    messages: int
    is_alone: bool
    """Whether it is one message that is in no batch: a large one, or a delayed one."""


class _Open:
    """A parcel that is not full yet."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size_bytes = 0
        self.count = 0

    def take(self, entries: Entries, first: int, end: int) -> int:
        """Take entries until it is full, or up to one; says which is the next."""
        ends = entries.ends
        room = ends[first] + _PARCEL_BYTES - self.size_bytes
        full = int(np.searchsorted(ends, room, side="right"))
        after = min(end, full, first + _PARCEL_COUNT - self.count)
        self.parts.append(bytes(entries.data[ends[first] : ends[after]]))
        self.size_bytes += int(ends[after] - ends[first])
        self.count += after - first
        return after

    @property
    def is_full(self) -> bool:
        return self.size_bytes > _PARCEL_BYTES or self.count >= _PARCEL_COUNT


_Target = tuple[str, int]
"""A topic, and the place of a queue among its own, or `_ANY`."""


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
        self._topic = topic or ""
        digest = hashlib.blake2b(identity.encode(), digest_size=_PREFIX_BYTES)
        self._prefix = digest.hexdigest().upper()
        self._turn = digest.digest()[0]
        self._rows = 0
        self._open: dict[_Target, _Open] = {}

    def pack(self, batch: pa.RecordBatch) -> Iterator[Parcel]:
        """Take rows in; parcels come out when they are full.

        Raises:
            ValueError: A row cannot be a message; says which and why.
        """
        if not batch.num_rows:
            return
        rows = Columns(batch, self._rows)
        bodies = rows.bodies(self._longest_bytes)
        is_large = numbers(pc.binary_length(bodies)) > _PARCEL_BYTES
        delays = rows.delays()
        is_alone = is_large if delays is None else is_large | (delays > 0)
        targets, chosen = self._targets(rows)
        entries = rows.entries(bodies, self._prefix)
        self._rows += batch.num_rows
        if len(targets) > 1:
            order = np.argsort(chosen, kind="stable")
            entries = entries.take(pa.array(order))
            is_large, is_alone = is_large[order], is_alone[order]
            chosen = chosen[order]
        found = as_one(entries)
        for number, target in enumerate(targets):
            first, end = np.searchsorted(chosen, [number, number + 1])
            yield from self._cut(
                target, found, int(first), int(end), is_large, is_alone
            )

    def rest(self) -> Iterator[Parcel]:
        """What is left when there are no more rows."""
        for target in list(self._open):
            yield self._closed(target)

    def _cut(
        self,
        target: _Target,
        entries: Entries,
        first: int,
        end: int,
        is_large: NDArray[np.bool_],
        is_alone: NDArray[np.bool_],
    ) -> Iterator[Parcel]:
        """Put entries of one target into parcels."""
        alone = [*(np.flatnonzero(is_alone[first:end]) + first).tolist(), end]
        for stop in alone:
            while first < stop:
                parcel = self._open.setdefault(target, _Open())
                first = parcel.take(entries, first, stop)
                if parcel.is_full:
                    yield self._closed(target)
            if stop < end:
                if is_large[stop] and target in self._open:
                    yield self._closed(target)
                data = entries.data[entries.ends[stop] : entries.ends[stop + 1]]
                yield Parcel(self._queue(target), bytes(data), 1, is_alone=True)
                first = stop + 1

    def _closed(self, target: _Target) -> Parcel:
        parcel = self._open.pop(target)
        data = b"".join(parcel.parts)
        return Parcel(self._queue(target), data, parcel.count, is_alone=False)

    def _queue(self, target: _Target) -> MessageQueue:
        topic, number = target
        queues = self._queues[topic]
        if number == _ANY:
            number = self._turn % len(queues)
            self._turn += 1
        return queues[number]

    def _targets(self, rows: Columns) -> tuple[list[_Target], NDArray[np.int64]]:
        """Where rows go, and which of those each row goes to."""
        topics, by_topic = self._topics(rows)
        found: dict[_Target, int] = {}
        chosen = np.zeros(rows.count, np.int64)
        for number, topic in enumerate(topics):
            at = np.flatnonzero(by_topic == number)
            if not len(at):
                continue
            queues = self._chosen_queues(rows, topic, at)
            for queue in np.unique(queues).tolist():
                place = found.setdefault((topic, queue), len(found))
                chosen[at[queues == queue]] = place
        return list(found), chosen

    def _topics(self, rows: Columns) -> tuple[list[str], NDArray[np.int64]]:
        """The topics of rows, and which of them each is for."""
        column = rows.column("topic")
        if column is None:
            topics, by_topic = [""], np.zeros(rows.count, np.int64)
        else:
            coded = pc.fill_null(column, "").dictionary_encode()
            topics, by_topic = coded.dictionary.to_pylist(), numbers(coded.indices)
        topics = [topic or self._topic for topic in topics]
        if "" in topics:
            nameless = int(np.argmax(by_topic == topics.index("")))
            rows.refuse(
                "topic", nameless, "null", "a name, or option topic for all rows"
            )
        return topics, by_topic

    def _chosen_queues(
        self, rows: Columns, topic: str, at: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The queue of each of some rows of a topic, or `_ANY`."""
        queues = self._queues.get(topic)
        if queues is None:
            queues = self._queues[topic] = self._ask_queues(topic)
        count = len(queues)
        # Rows of a topic's one queue stay in their order.
        found = np.full(len(at), 0 if count == 1 else _ANY, np.int64)
        if (keys := rows.column("sharding_key")) is not None:
            coded = keys.take(pa.array(at)).dictionary_encode()
            # As Java's SelectMessageQueueByHash does.
            by_key = [
                abs(tag_hash(key)) % count for key in coded.dictionary.to_pylist()
            ]
            codes = numbers(coded.indices, len(by_key))
            found = np.append(np.array(by_key, np.int64), found[0])[codes]
        if (asked := rows.column("queue")) is not None:
            asked = asked.take(pa.array(at))
            named = numbers(asked, 0)
            wrong = np.flatnonzero((named < 0) | (named >= count))
            if len(wrong):
                came, place = str(named[wrong[0]]), int(at[wrong[0]])
                rows.refuse("queue", place, came, f"0 to {count - 1}")
            found = np.where(
                asked.is_valid().to_numpy(zero_copy_only=False), named, found
            )
        return found
