"""Finding records by key, newest first."""

from __future__ import annotations

import asyncio
import mmap
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from storage.api import Found
from storage.file.block import ENTRY
from storage.file.index import KEYS_A_RUN, ActiveIndex, SealedIndex, Span, places_in
from storage.file.partition import key_seed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ThreadPoolExecutor

    from storage.file.fetcher import Checker
    from storage.file.partition import FilePartition
    from storage.file.reader import Reader
    from storage.file.segment import Segment
    from storage.file.segments import Segments


class Hit(NamedTuple):
    """A record whose key has the hash that is looked for."""

    store_ms: int
    partition: int
    """Which of the partitions that were asked for."""
    offset: int


class Query:
    """One look-up over all segments of a log."""

    def __init__(
        self,
        segments: Segments,
        reader: Reader,
        threads: ThreadPoolExecutor,
        check: Checker,
    ) -> None:
        self._segments = segments
        self._reader = reader
        self._threads = threads
        self._check = check

    async def run(
        self,
        partitions: Sequence[FilePartition],
        topic: str,
        key: str,
        times_ms: tuple[int, int],
        max_count: int,
    ) -> list[Found]:
        """The newest records with a key within a range of store times."""
        key_hash = crc32(key.encode(), key_seed(topic))
        ordinals = [partition.ordinal for partition in partitions]
        found: list[Found] = []
        for segment in reversed(tuple(self._segments.all)):
            for hit in await self._hits(segment, ordinals, key_hash, times_ms):
                partition = partitions[hit.partition]
                if len(found) == max_count:
                    return found
                chunk = await self._reader.read(partition, hit.offset, 1, 0, None)
                if chunk.records and chunk.next_offset == hit.offset + 1:
                    found.append(Found(hit.offset, bytes(chunk.data[0])))
        return found

    async def _hits(
        self,
        segment: Segment,
        ordinals: Sequence[int],
        key_hash: int,
        times_ms: tuple[int, int],
    ) -> list[Hit]:
        if isinstance(segment.index, SealedIndex) and not segment.index.checked:
            await self._check(segment)
        index = segment.index
        if segment.gone:
            return []
        if isinstance(index, ActiveIndex):
            hits = in_memory(index, ordinals, key_hash)
        else:
            loop = asyncio.get_running_loop()
            hits = await loop.run_in_executor(
                self._threads, in_file, segment, index, ordinals, key_hash
            )
        begin_ms, end_ms = times_ms
        wanted = [hit for hit in hits if begin_ms <= hit.store_ms <= end_ms]
        return sorted(wanted, reverse=True)


def in_memory(index: ActiveIndex, ordinals: Sequence[int], key_hash: int) -> list[Hit]:
    """Hits in a segment whose index is in memory."""
    places = sorted(set(index.places(key_hash)))
    hits: list[Hit] = []
    if places:
        for number, ordinal in enumerate(ordinals):
            span = index.span(ordinal)
            if span is not None:
                data = index.parts[ordinal].data
                hits += _matching(data, 0, number, span, places)
    return hits


def in_file(
    segment: Segment, index: SealedIndex, ordinals: Sequence[int], key_hash: int
) -> list[Hit]:
    """Hits in a sealed segment. In a reader's thread."""
    hits: list[Hit] = []
    try:
        file = segment.index_path.open("rb")
    except FileNotFoundError:  # retention was faster
        return hits
    with (
        file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        memoryview(data) as view,
    ):
        with view[index.keys_at : index.file_bytes] as raw, raw.cast("Q") as keys:
            places = {
                place
                for low in range(0, index.keys, KEYS_A_RUN)
                for place in places_in(
                    keys, low, min(low + KEYS_A_RUN, index.keys), key_hash
                )
            }
        if places:
            wanted = sorted(places)
            for number, ordinal in enumerate(ordinals):
                span = index.span(ordinal)
                if span is not None:
                    at = index.body_at + span.entry * ENTRY.size
                    hits += _matching(view, at, number, span, wanted)
    return hits


def _matching(
    data: bytearray | memoryview,
    at: int,
    number: int,
    span: Span,
    places: Sequence[int],
) -> list[Hit]:
    """Which places are records of one partition: by bisection over its entries."""
    hits: list[Hit] = []

    def place_of(entry: int) -> int:
        place: int = ENTRY.unpack_from(data, at + entry * ENTRY.size)[0]
        return place

    for place in places:
        entry = bisect_left(range(span.records), place, key=place_of)
        if entry < span.records:
            found, size, _, store_ms = ENTRY.unpack_from(data, at + entry * ENTRY.size)
            if found == place and size:
                hits.append(Hit(store_ms, number, span.base_offset + entry))
    return hits
