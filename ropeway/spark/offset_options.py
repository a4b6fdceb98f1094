"""Where reading begins and ends: offsets of every queue, by words, times or numbers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ropeway.client import MessageQueue
from ropeway.spark.options import COMMITTED, EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ropeway.client import BulkReader
    from ropeway.spark.options import Offsets

_EARLIEST, _LATEST = -2, -1
"""What stands for them among given offsets, as in Spark's Kafka source."""


def queue_name(queue: MessageQueue) -> str:
    """A queue's name within its topic."""
    return f"{queue.broker_name}:{queue.queue_id}"


def dump(places: Mapping[MessageQueue, int]) -> Offsets:
    """Offsets as Spark keeps them in its checkpoint."""
    found: Offsets = {}
    for queue, offset in sorted(places.items()):
        found.setdefault(queue.topic, {})[queue_name(queue)] = offset
    return found


def load(offsets: Offsets) -> dict[MessageQueue, int]:
    """Offsets from a checkpoint, or from an option.

    Raises:
        ValueError: A queue's name is not of the form `broker:queue id`.
    """
    found: dict[MessageQueue, int] = {}
    for topic, queues in offsets.items():
        for name, offset in queues.items():
            broker, _, queue_id = name.rpartition(":")
            if not broker or not queue_id.isdigit():
                raise ValueError(
                    f"queue {name!r} of topic {topic!r}; allowed: broker:queue id, "
                    "like broker-0:3"
                )
            found[MessageQueue(topic, broker, int(queue_id))] = offset
    return found


async def all_queues(reader: BulkReader, topics: Iterable[str]) -> list[MessageQueue]:
    """The queues of all topics, as they are now."""
    return [queue for topic in topics for queue in await reader.queues(topic)]


async def resolve(
    reader: BulkReader,
    queues: Iterable[MessageQueue],
    where: str | Offsets,
    time_ms: int | None,
) -> dict[MessageQueue, int]:
    """The offset of each queue at a place.

    Args:
        reader: Knows them.
        queues: Which queues.
        where: A word, or offsets; queues that these leave out begin with their first.
        time_ms: The first message at or after this time, where it is given.
    """
    given = {} if isinstance(where, str) else load(where)

    async def one(queue: MessageQueue) -> int:
        if time_ms is not None:
            return await reader.offset_for_timestamp(queue, time_ms)
        if isinstance(where, str):
            return await _at_word(reader, queue, where)
        offset = given.get(queue, _EARLIEST)
        if offset in (_EARLIEST, _LATEST):
            word = EARLIEST if offset == _EARLIEST else LATEST
            return await _at_word(reader, queue, word)
        return offset

    listed = list(queues)
    offsets = await asyncio.gather(*map(one, listed))
    return dict(zip(listed, offsets, strict=True))


async def _at_word(reader: BulkReader, queue: MessageQueue, word: str) -> int:
    if word == LATEST:
        return await reader.end_offset(queue)
    if word == COMMITTED:
        committed = await reader.committed(queue)
        if committed is not None:
            return max(committed, await reader.begin_offset(queue))
    return await reader.begin_offset(queue)
