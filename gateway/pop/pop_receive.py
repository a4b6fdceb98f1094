"""What one pop takes: queue after queue, until it has enough.

Queues are read in turn, each pop beginning at another. Retries come behind them, and
every fifth pop takes them first, so that neither can starve the other. Where messages
have priorities, queues are read from the highest to the lowest, and retries behind.

Source: PopConsumerService.popAsync, RocketMQ 5.3.4.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ropeway.gateway.wire import message, properties, receipt, record_rewrite
from ropeway.gateway.wire.errors import MessageError
from ropeway.gateway.wire.frame import Buffer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ropeway.gateway.node.served_topic import ServedTopic
    from ropeway.gateway.node.topics import Topics
    from ropeway.storage.api import Chunk, Filter

    Place = tuple[ServedTopic, int, int, Filter | None]
    """A queue of a pop: topic, queue id, kind of the topic, what is wanted of it."""

RETRY_FIRST_EVERY = 5
"""One pop of so many takes retries first: popFromRetryProbability is 20 percent."""
MAX_BYTES = 4 * 1024 * 1024
"""Most that one pop gives; one message it gives in any case."""

_ALL = (receipt.RETRY_V1, receipt.RETRY_V2)
_OWN = (receipt.RETRY_V2,)
_OFFSET = struct.Struct(">q")
_OFFSET_AT = 20
_PLACE = struct.Struct(">i4xqq")
_PLACE_AT = 12


class Wanted(NamedTuple):
    """What a pop asks for."""

    group: str
    topic: str
    queue_id: int
    """Below 0: any queue."""
    max_count: int
    invisible_ms: int
    filter: Filter | None = None
    """Which messages; all, where it is None."""
    from_earliest: bool = True
    """Where a group begins that has never consumed a queue."""
    in_order: bool = False
    attempt: str | None = None
    own_retries: bool = False
    """Whether a retry topic is left alone that is others', too, by its name."""
    priority_percent: int = 0
    """So many pops in a hundred begin at the last queue: that of highest priority."""


class Taken(msgspec.Struct, eq=False):
    """What a pop has got so far."""

    wanted: Wanted
    pop_ms: int
    """When it is, in milliseconds since 1970."""
    count: int = 0
    room: int = MAX_BYTES
    data: list[Buffer] = []
    rest: int = 0
    """About how many more there are."""
    cold: bool = False
    """Whether something was left that is not in memory."""
    more: bool = False
    """Whether a queue has more that was not looked at."""
    starts: list[str] = []
    """Of each queue the kind of its topic, its id, and where it was read from."""
    offsets: list[str] = []
    """The same with the messages' offsets."""
    orders: list[str] = []

    @property
    def size_bytes(self) -> int:
        """Of the messages."""
        return MAX_BYTES - self.room

    def put(
        self,
        retry: int,
        queue_id: int,
        start: int,
        chunk: Chunk,
        offsets: Sequence[int],
    ) -> None:
        """Messages of a queue were taken."""
        self.count += chunk.records
        self.data += chunk.data
        self.room -= sum(map(len, chunk.data))
        self.starts.append(f"{retry} {queue_id} {start}")
        self.offsets.append(f"{retry} {queue_id} {','.join(map(str, offsets))}")


def places(topics: Topics, wanted: Wanted, turn: int) -> Iterator[Place]:
    """The queues that a pop reads, in their order.

    Args:
        topics: Where they are.
        wanted: What it asks for.
        turn: How many pops of the group in the topic there were before.

    Returns:
        For each its topic, its id, the kind of its topic, and what is wanted of it:
        everything of retries, which were wanted once.
    """
    topic = topics.get(wanted.topic)
    if topic is None:
        return
    retries: list[Place] = []
    if not wanted.in_order:
        for kind in _OWN if wanted.own_retries else _ALL:
            name = receipt.retry_topic(wanted.group, wanted.topic, kind)
            if retry := topics.get(name):
                # More than one where a broker that was drained has given it its own.
                for queue_id in range(len(retry.partitions)):
                    retries.append((retry, queue_id, kind, None))  # noqa: PERF401 - faster
    by_priority = turn % 100 < wanted.priority_percent
    retry_first = not by_priority and turn % RETRY_FIRST_EVERY == 0
    if retry_first:
        yield from retries
    if wanted.queue_id >= 0:
        yield topic, wanted.queue_id, receipt.NORMAL, wanted.filter
    else:
        for queue_id in _queues(topic.setup.read_queue_nums, turn, by_priority):
            yield topic, queue_id, receipt.NORMAL, wanted.filter
    if not retry_first:
        yield from retries


def _queues(count: int, turn: int, by_priority: bool) -> Iterable[int]:
    if by_priority:
        return reversed(range(count))
    return ((turn + number) % count for number in range(count))


def offsets_of(chunk: Chunk, filtered: bool) -> Sequence[int]:
    """The queue offsets of what was read."""
    if not filtered:
        return range(chunk.next_offset - chunk.records, chunk.next_offset)
    return tuple(
        _OFFSET.unpack_from(one, _OFFSET_AT)[0]
        for piece in chunk.data
        for one in message.split(piece)
    )


def as_asked_for(chunk: Chunk, topic: ServedTopic, stub: receipt.Receipt) -> Chunk:
    """Retried messages as if they were in the topic that was asked for.

    Each gets its receipt, since a client could not tell it from the topic any more.

    Args:
        chunk: They, as they were read.
        topic: The topic that was asked for.
        stub: Their receipt, but for the offset.
    """
    data = []
    for piece in chunk.data:
        for offset, store_ms, record in record_rewrite.records_in(piece):
            parts = record_rewrite.parts_of(record)
            queue_id, queue_offset, identity = _PLACE.unpack_from(record, _PLACE_AT)
            text = record[parts.properties_at :]
            end = b"" if not text or text.endswith(b"\x02") else b"\x02"
            ours = f"{properties.POP_CK}\x01{receipt.dump(stub, offset)}\x02"
            whole = b"".join((text, end, ours.encode()))
            if len(whole) > message.MAX_PROPERTIES_BYTES:
                raise MessageError(
                    f"properties of {len(whole)} bytes with the receipt; "
                    f"allowed: {message.MAX_PROPERTIES_BYTES}"
                )
            data.append(
                record_rewrite.moved(
                    record,
                    parts,
                    whole,
                    topic.magic,
                    topic.name_field,
                    queue_id,
                    queue_offset,
                    identity,
                    store_ms,
                )
            )
    return chunk._replace(data=data)
