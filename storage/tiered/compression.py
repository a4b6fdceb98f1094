"""How blocks of tiered segments are compressed. The only cramjam code here."""

from __future__ import annotations

import importlib
from typing import Any, Literal

Compression = Literal["none", "zstd"]

CODES: dict[Compression, int] = {"none": 0, "zstd": 1}
"""Numbers in FORMAT.md."""

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


def compress(code: int, data: bytes) -> bytes | memoryview:
    """A block as it is stored."""
    if code == CODES["none"]:
        return data
    return memoryview(_zstd().compress(data, level=LEVEL))


def decompress(code: int, stored: bytes | memoryview, raw_bytes: int) -> bytes:
    """A block as it was.

    Raises:
        ValueError: It is not one of that compression, or has another length.
    """
    if code == CODES["none"]:
        raw = bytes(stored)
    elif code == CODES["zstd"]:
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
        raw = bytes(memoryview(buffer)[:size])
    else:
        raise ValueError(f"compression {code}; allowed: {sorted(CODES.values())}")
    if len(raw) != raw_bytes:
        raise ValueError(f"block of {len(raw)} bytes; its index says {raw_bytes}")
    return raw


def _zstd() -> Any:
    return importlib.import_module("cramjam").zstd
