"""Reading a segment file block by block: what is whole in it, and what is not."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, NamedTuple

from ropeway.storage.file.block import Block, decode, intact_after

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Damage(NamedTuple):
    """A place where no whole block is though there should be one."""

    place: int
    intact: int
    """How many whole blocks follow in the segment."""
    durable: int
    """Up to which position those blocks say the log was synced."""


def mapped(path: Path) -> mmap.mmap:
    """A file as memory."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def blocks(
    data: mmap.mmap, view: memoryview, base: int, log_id: int
) -> Iterator[tuple[int, Block] | Damage]:
    """The whole blocks of a segment with their places, and what is not whole.

    Zeros up to the end are neither: they are set aside for blocks to come.

    Args:
        data: The segment's file.
        view: The same, as a view that the caller releases.
        base: The position at which the segment begins.
        log_id: The log that its blocks must be of.
    """
    place = 0
    while place < len(view):
        block = decode(view, place, base, log_id)
        if block is not None:
            yield place, block
            place += block.length
            continue
        # Only so much of each block: the entries of all might not fit into memory.
        after = [
            (at, block.durable)
            for at, block in intact_after(view, data.find, place + 1, base, log_id)
        ]
        if not after:
            if nonzero_end(data, place) > place:
                yield Damage(place, 0, 0)
            return
        yield Damage(place, len(after), max(durable for _, durable in after))
        place = after[0][0]


def nonzero_end(data: mmap.mmap, place: int) -> int:
    """One past the last byte that is not zero, not before a place."""
    step = 1 << 16
    end = len(data)
    zeros = bytes(step)
    while end > place:
        begin = max(end - step, place)
        piece = data[begin:end]
        if piece != zeros[: end - begin]:
            return begin + len(piece.rstrip(b"\0"))
        end = begin
    return place
