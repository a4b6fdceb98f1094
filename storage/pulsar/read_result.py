"""One read's answer, gathered from pack after pack. No I/O here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropeway.storage.api import MAX_LOOKED_BYTES, MAX_LOOKS, Chunk, Filter
from ropeway.storage.pulsar.pack import matching, take

if TYPE_CHECKING:
    from ropeway.storage.pulsar.pack import Pack


_ALL = Filter()


class Gathering:
    """Records from an offset on, up to a count and a size.

    Args:
        offset: Of the first record that is wanted.
        end: One past the last record that may be seen.
        max_count: At most so many records.
        max_bytes: Stop before the record that would go over.
        wanted: Which records; None for all.
        gaps: Whether packs may have records that compaction took out: of no bytes.
    """

    __slots__ = (
        "_end",
        "_gaps",
        "_left_bytes",
        "_left_count",
        "_left_looks",
        "_left_shown",
        "_pieces",
        "_records",
        "_wanted",
        "offset",
    )

    def __init__(
        self,
        offset: int,
        end: int,
        max_count: int,
        max_bytes: int,
        wanted: Filter | None,
        *,
        gaps: bool = False,
    ) -> None:
        self.offset = offset
        """Where the next pack has to go on."""
        self._end = end
        self._left_count = max_count
        self._left_bytes = max_bytes
        self._left_looks = MAX_LOOKS if wanted is None else wanted.looks
        self._left_shown = MAX_LOOKED_BYTES
        self._gaps = gaps
        self._wanted = _ALL if wanted is None and gaps else wanted
        self._pieces: list[bytes | memoryview] = []
        self._records = 0

    @property
    def found(self) -> bool:
        """Whether there is anything to answer with."""
        return self._records > 0

    def chunk(self) -> Chunk:
        """The answer."""
        return Chunk(self._pieces, self._records, self.offset)

    def add(self, pack: Pack) -> bool:
        """Take what is wanted of the pack that has `offset`; False when that is all.

        Before a gap it may be the pack before it, of which nothing is taken, and
        behind it the next one.
        """
        base = pack.base_offset
        if self.offset >= pack.end:
            return True
        self.offset = max(self.offset, base)
        begin = self.offset - base
        stop = min(pack.count, self._end - base)
        if self._wanted is None:
            stop = min(stop, begin + self._left_count)
            self._take(pack, begin, stop)
            whole = self.offset == base + stop
        else:
            stop = min(stop, begin + self._left_looks)
            self._left_looks -= stop - begin
            if self._wanted.accept is not None:
                self._left_shown -= pack.length
            whole = self._choose(pack, begin, stop, self._wanted)
        return (
            whole
            and self._left_count > 0
            and self._left_looks > 0
            and self._left_shown > 0
            and self.offset < self._end
        )

    def _take(self, pack: Pack, begin: int, stop: int) -> bool:
        """Take records that follow each other; False when they did not all fit."""
        count, size = take(
            pack,
            begin,
            stop,
            self._left_bytes,
            forced=not self._records,
            into=self._pieces,
        )
        self._records += count
        self._left_count -= count
        self._left_bytes -= size
        self.offset = pack.base_offset + begin + count
        return begin + count == stop

    def _choose(self, pack: Pack, begin: int, stop: int, wanted: Filter) -> bool:
        accept = wanted.accept
        run: list[int] = []
        for number in matching(pack, begin, stop, wanted):
            if self._gaps and not pack.record(number):
                continue
            if accept is not None and not accept(pack.record(number)):
                continue
            if run and run[-1] + 1 != number:
                if not self._take(pack, run[0], run[-1] + 1):
                    return False
                run = []
            run.append(number)
            if len(run) == self._left_count:
                break
        if run and not self._take(pack, run[0], run[-1] + 1):
            return False
        if self._left_count:
            self.offset = pack.base_offset + stop
        return True
