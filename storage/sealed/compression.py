"""How blocks of sealed segments are compressed. The only cramjam code here."""

from __future__ import annotations

import importlib
from typing import Any, Literal

Compression = Literal["none", "zstd"]

LEVEL = 3
"""zstd's own default: 300 MB/s on one core, and most of what higher levels save."""


LARGEST_BYTES = 16 * 1024 * 1024
"""Of a block: it has 1 MiB, or one record, of which the log takes 16 MiB at most."""


def complaint(compression: Compression) -> str | None:
    """Why a compression cannot be had here; None where it can."""
    if compression == "none":
        return None
    try:
        importlib.import_module("cramjam")
    except ImportError:
        return "cramjam is not installed; it comes with: pip install ropeway[tier]"
    return None


def compress(data: bytes) -> memoryview:
    """A block as one zstd frame."""
    return memoryview(_zstd().compress(data, level=LEVEL))


def decompress(stored: bytes | memoryview, raw_bytes: int) -> memoryview:
    """A block as it was.

    Args:
        stored: A zstd frame.
        raw_bytes: What the index says that it has.

    Raises:
        ValueError: It is no frame, or has another length.
    """
    if raw_bytes > LARGEST_BYTES:
        raise ValueError(
            f"block of {raw_bytes} bytes, says its index; allowed: {LARGEST_BYTES}"
        )
    try:
        # Into memory of the promised size: a bomb fails instead of growing.
        buffer = bytearray(raw_bytes)
        size = _zstd().decompress_into(stored, buffer)
    except Exception as error:
        raise ValueError(f"zstd: {error}") from error
    if size != raw_bytes:
        raise ValueError(f"block of {size} bytes; its index says {raw_bytes}")
    return memoryview(buffer)


def _zstd() -> Any:
    return importlib.import_module("cramjam").zstd
