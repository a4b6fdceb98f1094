"""Holding sealed indexes against their checksums, once, before they are trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from pathlib import Path

    from storage.file.index import SealedIndex

PIECE_BYTES = 1 << 20


def body_is_whole(path: Path, index: SealedIndex) -> bool:
    """Whether entries and keys of an index file are what was written.

    Raises:
        OSError: The file cannot be read.
    """
    checksum = 0
    with path.open("rb") as file:
        file.seek(index.body_at)
        while piece := file.read(PIECE_BYTES):
            checksum = crc32(piece, checksum)
    return checksum == index.body_crc
