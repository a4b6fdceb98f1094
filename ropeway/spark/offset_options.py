"""Where reading begins and ends: offsets of every queue, by words, times or numbers."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

from ropeway.client import MessageQueue, TopicNotFoundError
from ropeway.client.bulk import MessagesGoneError
from ropeway.spark.options import COMMITTED, EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ropeway.client import BulkReader
    from ropeway.spark.options import Offsets, Options

_NAMED = 8
"""So many queues are named in an error."""
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


def made_anew(queue: MessageQueue, begin: int, end: int) -> MessagesGoneError:
    """Return the error of a queue that ends before what is to be read begins."""
    return MessagesGoneError(
        f"queue {queue.queue_id} of topic {queue.topic!r} on {queue.broker_name!r} is "
        f"to be read from offset {begin}, and ends at {end}: the topic was deleted and "
        "made again, or its log was cut; allowed with failOnDataLoss=false"
    )


def check_names(
    where: str | int | Offsets | None,
    queues: Iterable[MessageQueue],
    option: str,
    *,
    must_be_all: bool = False,
) -> None:
    """Refuse offsets of queues that are not there, or that leave some out.

    Args:
        where: A word, a time, or offsets or times of queues.
        queues: All that there are.
        option: Where it was given.
        must_be_all: Whether each queue must be named.

    Raises:
        ValueError: Names them, and what is allowed.
    """
    if not isinstance(where, dict):
        return
    there, given = set(queues), load(where).keys()
    if unknown := given - there:
        raise ValueError(
            f"option {option} names {_listed(unknown)}; allowed: {_listed(there)}"
        )
    if must_be_all and (missing := there - given):
        raise ValueError(
            f"option {option} leaves out {_listed(missing)}; allowed: all queues of "
            "all topics; as an offset, -1 is the latest"
        )


def _listed(queues: Iterable[MessageQueue]) -> str:
    found = [f"{queue_name(one)} of topic {one.topic!r}" for one in sorted(queues)]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


async def all_queues(reader: BulkReader, options: Options) -> list[MessageQueue]:
    """The queues of all topics that are to be read, as they are now.

    Raises:
        TopicNotFoundError: A topic that was named does not exist.
        RemotingError: A name server or a broker does not tell.
    """
    found = [one for topic in options.topics for one in await reader.queues(topic)]
    if options.pattern is not None:
        for topic in await reader.topics():
            if re.fullmatch(options.pattern, topic):
                # It may be deleted meanwhile.
                with contextlib.suppress(TopicNotFoundError):
                    found += await reader.queues(topic)
    return found


async def resolve(
    reader: BulkReader,
    queues: Iterable[MessageQueue],
    where: str | Offsets,
    times_ms: int | Offsets | None,
) -> dict[MessageQueue, int]:
    """The offset of each queue at a place.

    Args:
        reader: Knows them.
        queues: Which queues.
        where: A word, or offsets; queues that these leave out begin with their first.
        times_ms: The first message at or after this time, or that of each queue,
            where it is given; behind the last one where there is none.
    """
    given = {} if isinstance(where, str) else load(where)
    time_ms = time_in(times_ms)

    async def one(queue: MessageQueue) -> int:
        if (at_ms := time_ms(queue)) is not None:
            return await reader.offset_for_timestamp(queue, at_ms)
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


def time_in(times_ms: int | Offsets | None) -> Callable[[MessageQueue], int | None]:
    """The time of a queue; None where its place is none."""
    if isinstance(times_ms, dict):
        return load(times_ms).get
    return lambda _: times_ms


async def first_offsets(
    reader: BulkReader,
    queues: Iterable[MessageQueue],
    options: Options,
    default: str,
    there: Iterable[MessageQueue] | None = None,
) -> dict[MessageQueue, int]:
    """The offset of each queue where reading begins.

    Args:
        reader: Knows them.
        queues: Which queues.
        options: Say where.
        default: A word, where they do not.
        there: All queues that may be named, where some of them are not wanted.

    Raises:
        ValueError: The options name what is not there, or leave out what is.
    """
    queues = list(queues)
    check_starts(options, queues if there is None else there)
    found = await resolve(
        reader, queues, options.starting or default, options.starting_ms
    )
    if options.needs_start and options.starting_ms is not None:
        await _check_found(reader, found)
    return found


def check_starts(options: Options, queues: Iterable[MessageQueue]) -> None:
    """Refuse a start of queues that are not there, or times that leave some out."""
    check_names(options.starting, queues, "startingOffsets")
    by_time = "startingOffsetsByTimestamp"
    check_names(options.starting_ms, queues, by_time, must_be_all=True)


def check_ends(options: Options, queues: Iterable[MessageQueue]) -> None:
    """Refuse an end of queues that are not there, or that leaves some out."""
    by_time = "endingOffsetsByTimestamp"
    check_names(options.ending, queues, "endingOffsets", must_be_all=True)
    check_names(options.ending_ms, queues, by_time, must_be_all=True)


async def _check_found(
    reader: BulkReader, starting: Mapping[MessageQueue, int]
) -> None:
    """Refuse to begin behind the last message of a queue.

    Raises:
        ValueError: Names them, and what is allowed.
    """
    ends = await resolve(reader, starting, LATEST, None)
    if found := [queue for queue, at in starting.items() if at >= ends[queue]]:
        raise ValueError(
            "option startingOffsetsByTimestampStrategy is 'error', and there is no "
            f"message of that time or later in {_listed(found)}; allowed: an earlier "
            "time, or latest, which begins behind the last one"
        )


async def _at_word(reader: BulkReader, queue: MessageQueue, word: str) -> int:
    if word == LATEST:
        return await reader.end_offset(queue)
    if word == COMMITTED:
        committed = await reader.committed(queue)
        if committed is not None:
            return max(committed, await reader.begin_offset(queue))
    return await reader.begin_offset(queue)
