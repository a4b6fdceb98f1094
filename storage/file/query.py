"""Finding records by key, newest first."""

from __future__ import annotations

import asyncio
import mmap
from bisect import bisect_left
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from storage.api import Found
from storage.file.block import ENTRY
from storage.file.index import KEYS_A_RUN, ActiveIndex, SealedIndex, Span, places_in
from storage.file.partition import key_seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from storage.file.fetcher import Checker
    from storage.file.partition import FilePartition
    from storage.file.reader import Reader
    from storage.file.segment import Segment
    from storage.file.segments import Segments


_AT_ONCE = 128
"""Places that are looked up without a pause: a millisecond."""


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
        begin_ms, end_ms = times_ms
        found: list[Found] = []
        for segment in reversed(tuple(self._segments.all)):
            places = await self._places(segment, key_hash)
            # The newest first: of a key that very many have, few are wanted.
            for end in range(len(places), 0, -_AT_ONCE):
                some = places[max(end - _AT_ONCE, 0) : end]
                hits = await self._hits(segment, ordinals, some)
                for hit in sorted(hits, reverse=True):
                    if not begin_ms <= hit.store_ms <= end_ms:
                        continue
                    partition = partitions[hit.partition]
                    chunk = await self._reader.read(partition, hit.offset, 1, 0, None)
                    if chunk.records and chunk.next_offset == hit.offset + 1:
                        found.append(Found(hit.offset, bytes(chunk.data[0])))
                        if len(found) == max_count:
                            return found
        return found

    async def _places(self, segment: Segment, key_hash: int) -> list[int]:
        """Where records of a segment with a key's hash begin, ascending."""
        if isinstance(segment.index, SealedIndex) and not segment.index.checked:
            await self._check(segment)
        index = segment.index
        if segment.gone:
            return []
        if isinstance(index, ActiveIndex):
            return sorted(set(index.places(key_hash)))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, _places_in_file, segment, index, key_hash
        )

    async def _hits(
        self, segment: Segment, ordinals: Sequence[int], places: Sequence[int]
    ) -> list[Hit]:
        """Which places are records of the partitions; others go on in between."""
        index = segment.index
        if segment.gone:
            return []
        if isinstance(index, SealedIndex):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._threads, _hits_in_file, segment, index, ordinals, places
            )
        hits: list[Hit] = []
        for number, ordinal in enumerate(ordinals):
            span = index.span(ordinal)
            if span is not None:
                hits += _matching(index.parts[ordinal].data, 0, number, span, places)
                if len(places) == _AT_ONCE:
                    await asyncio.sleep(0)
        return hits


@contextmanager
def _mapped(segment: Segment) -> Iterator[memoryview]:
    """The index of a sealed segment; nothing where retention was faster."""
    try:
        file = segment.index_path.open("rb")
    except FileNotFoundError:
        yield memoryview(b"")
        return
    with (
        file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        memoryview(data) as view,
    ):
        yield view


def _places_in_file(segment: Segment, index: SealedIndex, key_hash: int) -> list[int]:
    """Where records with a key's hash begin, ascending. In a reader's thread."""
    with _mapped(segment) as view:
        if not view:
            return []
        with view[index.keys_at : index.file_bytes] as raw, raw.cast("Q") as keys:
            places = {
                place
                for low in range(0, index.keys, KEYS_A_RUN)
                for place in places_in(
                    keys, low, min(low + KEYS_A_RUN, index.keys), key_hash
                )
            }
    return sorted(places)


def _hits_in_file(
    segment: Segment,
    index: SealedIndex,
    ordinals: Sequence[int],
    places: Sequence[int],
) -> list[Hit]:
    """Which places are records of the partitions. In a reader's thread."""
    hits: list[Hit] = []
    with _mapped(segment) as view:
        for number, ordinal in enumerate(ordinals):
            span = index.span(ordinal)
            if span is not None and view:
                at = index.body_at + span.entry * ENTRY.size
                hits += _matching(view, at, number, span, places)
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
