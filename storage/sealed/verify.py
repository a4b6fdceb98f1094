"""Checking a segment, wherever it is, without changing a byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from ropeway.storage.api import LogError
from ropeway.storage.sealed.index import decode_index
from ropeway.storage.sealed.layout import SegmentError, decode_keys

if TYPE_CHECKING:
    from ropeway.storage.sealed.index import Index
    from ropeway.storage.sealed.layout import Whose

Part = Literal["data", "keys", "index"]


class Get(Protocol):
    """Gives bytes of a segment's parts: a provider's objects, or files."""

    async def __call__(
        self, part: Part, start: int = 0, size: int | None = None, /
    ) -> bytes:
        """Bytes from `start` on, at most `size`; all of them for None."""


class WrongPartError(Exception):
    """A part of a segment is not what was written."""

    def __init__(self, part: Part, reason: Exception) -> None:
        super().__init__(str(reason))
        self.part = part


async def verify(get: Get, whose: Whose, base: int, end: int | None = None) -> Index:
    """Check every byte of a segment; its index.

    Args:
        get: Gives them.
        whose: The partition, as its name says.
        base: The first offset, likewise.
        end: One past the last one, likewise; None where it does not.

    Raises:
        WrongPartError: It is not what was written, or a part cannot be had.
    """
    part: Part = "index"
    try:
        index = decode_index(await get(part))
        index.check_name(whose, base, end)
        part = "data"
        for block in range(index.blocks):
            stored = await get(part, *index.data_at(block, block + 1))
            index.open_block(block, stored)
        # One byte more is asked for than there is.
        behind = await get(part, index.about.data_bytes - 1, 2)
        index.check_data_bytes(index.about.data_bytes - 1 + len(behind))
        if index.about.keys:
            part = "keys"
            decode_keys(await get(part), index.about)
    except (SegmentError, LogError, OSError) as error:
        raise WrongPartError(part, error) from error
    return index
