"""What a tier has of topics, and reading it: from its objects alone, without a gateway.

With `compacting` the only code here that knows how Ropeway stores segments.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from ropeway.client import MessageQueue
from ropeway.gateway.wire.properties import tag_hash
from ropeway.spark import compacted
from ropeway.spark.compacted import CompactedName
from ropeway.storage.api import LogError
from ropeway.storage.sealed.layout import SegmentError
from ropeway.storage.tiered import listing, object_names
from ropeway.storage.tiered.api import ObjectMissingError
from ropeway.storage.tiered.providers import open_provider

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence

    from ropeway.storage.sealed.index import Block, Index
    from ropeway.storage.tiered.api import Provider
    from ropeway.storage.tiered.object_names import SegmentName

    Name = SegmentName | CompactedName

_SPAN_BYTES = 8 * 1024 * 1024
"""Blocks that stand together are fetched together, up to so many bytes."""
_ATTEMPTS = 3
"""Small segments are put together while a job reads: it lists anew then."""


class TierError(Exception):
    """A tier cannot be read; names the object, what is wrong, and the remedy."""


class TierQueue(NamedTuple):
    """A queue as a tier has it."""

    queue: MessageQueue
    number: int
    """Of its partition."""
    segments: Sequence[Name]
    """At least one, by offset."""

    @property
    def begin(self) -> int:
        """The first offset that is there."""
        return self.segments[0].base

    @property
    def end(self) -> int:
        """One past the last one."""
        return self.segments[-1].end


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Provider]:
    """What has the tier at a URL; its failures become a `TierError`."""
    try:
        provider = open_provider(url)
        try:
            yield provider
        finally:
            await provider.close()
    except LogError as error:
        raise TierError(str(error)) from error


def broker_of(url: str) -> str:
    """The broker whose tier it is: gateways give each a folder of its name."""
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])


async def queues(provider: Provider, topic: str, broker_name: str) -> list[TierQueue]:
    """The queues of a topic that a tier has something of, by partition.

    Where there is no tier, they are those of a compacted topic's files.

    Raises:
        LogError: The provider cannot be asked.
        TierError: An object is not what was put.
    """
    found = await listing.listed(provider, object_names.topic_prefix(topic))
    made: dict[int, dict[int, list[Name]]] = {}
    for name in found.whole:
        made.setdefault(name.number, {}).setdefault(name.identity, []).append(name)
    if not made:
        for number, names in (await compacted.listed(provider, topic)).items():
            made[number] = {0: [*names]}
    return [
        TierQueue(
            MessageQueue(topic, broker_name, await _queue_id(provider, segments[0])),
            number,
            segments,
        )
        for number, by_identity in sorted(made.items())
        for segments in [await _newest(provider, [*by_identity.values()])]
    ]


async def _newest(provider: Provider, candidates: list[list[Name]]) -> list[Name]:
    """The one of several partitions of one number that is in use.

    A topic that is deleted and made again is another one; what was of the old one goes
    a little later.
    """
    if len(candidates) == 1:
        return candidates[0]
    written = [
        (await index_of(provider, one[-1])).about.written_ms for one in candidates
    ]
    return candidates[written.index(max(written))]


async def _queue_id(provider: Provider, name: Name) -> int:
    """The queue of a partition, as its messages say."""
    index = await index_of(provider, name)
    (block,) = await _fetched(provider, name, index, range(1))
    return int.from_bytes(block.data[_QUEUE_ID_AT : _QUEUE_ID_AT + 4], "big")


_QUEUE_ID_AT = 12
"""Size, magic and checksum stand before it. Source: MessageDecoder.java, 5.3.4."""


async def index_of(provider: Provider, name: Name) -> Index:
    """The index of a segment.

    Raises:
        LogError: The provider cannot be asked, or has none.
        TierError: It is not what was put, or is of a newer version.
    """
    try:
        return name.opened(await provider.get(name.object("index")))
    except SegmentError as error:
        raise _wrong(provider, name.object("index"), error) from error


async def offset_at(provider: Provider, queue: TierQueue, time_ms: int) -> int:
    """The first message stored at or after a time; the end where there is none.

    Raises:
        LogError: The provider cannot be asked.
        TierError: An object is not what was put.
    """
    low, high = 0, len(queue.segments)
    while low < high:
        middle = (low + high) // 2
        index = await index_of(provider, queue.segments[middle])
        if index.about.most_ms < time_ms:
            low = middle + 1
        else:
            high = middle
    if low == len(queue.segments):
        return queue.end
    name = queue.segments[low]
    index = await index_of(provider, name)
    for number in range(index.blocks):
        columns = index.columns(number)
        for at, one in enumerate(columns.times):
            if one >= time_ms:
                return columns.offset(at)
    return name.end


async def read(
    provider: Provider,
    segments: Sequence[Name],
    begin: int,
    end: int,
    tags: Collection[str] | None,
    *,
    must_be_whole: bool,
) -> AsyncGenerator[bytes, None]:
    """Stored messages of a partition, back to back: those of a block or a part of it.

    Args:
        provider: Has the segments.
        segments: Those that have something of the range, by offset.
        begin: The first offset; some before it come along.
        end: One past the last one; some from there on come along.
        tags: Only messages with one of these; others of the same hash come along.
        must_be_whole: Whether offsets that are not there are an error.

    Raises:
        LogError: The provider cannot be asked.
        TierError: An object is not what was put, or some of the range is not there.
    """
    hashes = None if tags is None else frozenset(map(tag_hash, tags))
    attempts = 0
    while begin < end:
        name = next((one for one in segments if one.end > begin), None)
        if name is None or name.base >= end:
            break
        if name.base > begin and must_be_whole:
            break
        try:
            async for data, after in _blocks(provider, name, begin, end, hashes):
                yield data
                begin, attempts = after, 0
            begin = name.end
        except ObjectMissingError as error:
            if isinstance(name, CompactedName):
                # Files of two rounds may have two messages of one key.
                raise TierError(
                    f"{error}: a round of compaction has replaced it; read again"
                ) from error
            attempts += 1
            if attempts == _ATTEMPTS:
                raise
            prefix = object_names.partition_prefix(
                name.topic, name.number, name.identity
            )
            segments = (await listing.listed(provider, prefix)).whole
    if begin < end and must_be_whole:
        where = segments[0] if segments else None
        raise TierError(
            f"{provider.label} has not the offsets {begin} to {end - 1} of "
            f"{where and f'partition {where.number} of topic {where.topic!r}'}; "
            "allowed: what it has; a table without them, by failOnDataLoss false"
        )


async def _blocks(
    provider: Provider,
    name: Name,
    begin: int,
    end: int,
    hashes: frozenset[int] | None,
) -> AsyncIterator[tuple[bytes, int]]:
    """Blocks of a segment, each with the offset that is behind it."""
    index = await index_of(provider, name)
    spans = _spans(index, begin, end, hashes)
    ahead: asyncio.Task[list[Block]] | None = None
    try:
        for at, span in enumerate(spans):
            task = ahead or asyncio.create_task(_fetched(provider, name, index, span))
            ahead = None
            if at + 1 < len(spans):
                ahead = asyncio.create_task(
                    _fetched(provider, name, index, spans[at + 1])
                )
            for block in await task:
                yield (
                    bytes(block.data) if hashes is None else _tagged(block, hashes),
                    block.columns.last + 1,
                )
    finally:
        if ahead is not None:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)


def _spans(
    index: Index, begin: int, end: int, hashes: frozenset[int] | None
) -> list[range]:
    """Which blocks are wanted, together where they stand together."""
    spans: list[range] = []
    used = 0
    for number in range(index.block_at(begin), index.blocks):
        if index.firsts[number] >= end:
            break
        if hashes is not None and hashes.isdisjoint(index.columns(number).tags):
            continue
        _, size = index.data_at(number, number + 1)
        used += size
        if spans and spans[-1].stop == number and used <= _SPAN_BYTES:
            spans[-1] = range(spans[-1].start, number + 1)
        else:
            spans.append(range(number, number + 1))
            used = size
    return spans


async def _fetched(
    provider: Provider, name: Name, index: Index, span: range
) -> list[Block]:
    """Blocks that stand together, each held against its checksum."""
    part = name.object("data")
    begin, size = index.data_at(span.start, span.stop)
    view = memoryview(await provider.get(part, begin, size))
    found = []
    for number in span:
        place, size = index.data_at(number, number + 1)
        stored = view[place - begin : place - begin + size]
        try:
            found.append(index.open_block(number, stored))
        except SegmentError as error:
            raise _wrong(provider, part, error) from error
    return found


def _tagged(block: Block, hashes: frozenset[int]) -> bytes:
    places = block.places
    return b"".join(
        block.data[places[at] : places[at + 1]]
        for at, tag in enumerate(block.columns.tags)
        if tag in hashes
    )


def _wrong(provider: Provider, part: str, error: SegmentError) -> TierError:
    return TierError(
        f"{provider.label}, object {part}: {error}; ropeway tier verify tells all "
        "that are not what was put"
    )
