"""Finding records by key, newest first."""

from __future__ import annotations

import asyncio
import mmap
from bisect import bisect_left
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from ropeway.storage.api import Found, NoSuchPartitionError
from ropeway.storage.file.block import ENTRY
from ropeway.storage.file.index import KEYS_A_RUN, SealedIndex, Span, places_in
from ropeway.storage.file.partition import key_seed
from ropeway.storage.file.segment import ActiveIndex

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from ropeway.storage.file.fetcher import Checker
    from ropeway.storage.file.partition import FilePartition
    from ropeway.storage.file.segment import Segment
    from ropeway.storage.file.segments import Segments


_AT_ONCE = 128
"""Places that are looked up without a pause: a millisecond."""
_RUNS_AT_ONCE = 256
"""Runs of keys that are searched without a pause: a millisecond, too."""


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
        threads: ThreadPoolExecutor,
        check: Checker,
    ) -> None:
        self._segments = segments
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
            async for places in self._places(segment, key_hash):
                hits = await self._hits(segment, ordinals, places)
                for hit in sorted(hits, reverse=True):
                    if not begin_ms <= hit.store_ms <= end_ms:
                        continue
                    partition = partitions[hit.partition]
                    try:
                        chunk = await partition.read(hit.offset, 1, 0)
                    except NoSuchPartitionError:
                        continue
                    if chunk.records and chunk.next_offset == hit.offset + 1:
                        found.append(Found(hit.offset, bytes(chunk.data[0])))
                        if len(found) == max_count:
                            return found
        return found

    async def _places(
        self, segment: Segment, key_hash: int
    ) -> AsyncGenerator[list[int], None]:
        """Where records of a segment with a key's hash begin, newest first.

        A few at a time: of a key that very many have, few are wanted.
        """
        if isinstance(segment.index, SealedIndex) and not segment.index.checked:
            await self._check(segment)
        index, loop = segment.index, asyncio.get_running_loop()
        run, oldest = index.runs, -1
        while run and not segment.gone:
            if isinstance(index, ActiveIndex):
                run, places = _newest(index, run, key_hash)
                await asyncio.sleep(0)
            else:
                run, places = await loop.run_in_executor(
                    self._threads, _newest_in_file, segment, index, run, key_hash
                )
            # A record with two keys of one hash is there twice, maybe in two runs.
            distinct = [place for place in dict.fromkeys(places) if place != oldest]
            for at in range(0, len(distinct), _AT_ONCE):
                yield distinct[at : at + _AT_ONCE]
            oldest = places[-1] if places else oldest

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


def _newest(
    index: ActiveIndex | _KeysInFile, run: int, key_hash: int
) -> tuple[int, list[int]]:
    """Search runs of keys before one, until some are found.

    Returns:
        The run that was searched last, and the places, newest first.
    """
    places: list[int] = []
    last = max(run - _RUNS_AT_ONCE, 0)
    while run > last and len(places) < _AT_ONCE:
        run -= 1
        places += index.places(run, key_hash)
    return run, places


class _KeysInFile(NamedTuple):
    """The keys of a sealed index."""

    keys: memoryview

    def places(self, run: int, key_hash: int) -> Iterator[int]:
        low = run * KEYS_A_RUN
        return places_in(
            self.keys, low, min(low + KEYS_A_RUN, len(self.keys)), key_hash
        )


def _newest_in_file(
    segment: Segment, index: SealedIndex, run: int, key_hash: int
) -> tuple[int, list[int]]:
    """Search runs of keys as `_newest` does. In a reader's thread."""
    with _mapped(segment) as view:
        if not view:
            return 0, []
        with view[index.keys_at : index.file_bytes] as raw, raw.cast("Q") as keys:
            return _newest(_KeysInFile(keys), run, key_hash)


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
