"""The compressions that native producers may choose, and how each is undone."""

import zlib
from collections.abc import Callable

import cramjam

LARGEST_BYTES = 16 * 1024 * 1024
"""Of what an entry holds: RocketMQ's clients take no longer frame, and Pulsar's own
producers end a batch at 128 KiB and an entry at 5 MiB, unless configured."""


def _zlib(data: memoryview, size_bytes: int) -> memoryview:
    # One byte more than allowed tells a longer payload from a whole one.
    return memoryview(zlib.decompressobj().decompress(data, size_bytes + 1))


def _lz4(data: memoryview, size_bytes: int) -> memoryview:
    out = bytearray(size_bytes)
    written = cramjam.lz4.decompress_block_into(data, out, output_len=size_bytes)
    return memoryview(out)[:written]


def _zstd(data: memoryview, size_bytes: int) -> memoryview:
    out = bytearray(size_bytes)
    return memoryview(out)[: cramjam.zstd.decompress_into(data, out)]


def _snappy(data: memoryview, size_bytes: int) -> memoryview:
    out = bytearray(size_bytes)
    return memoryview(out)[: cramjam.snappy.decompress_raw_into(data, out)]


COMPRESSIONS: dict[int, tuple[str, Callable[[memoryview, int], memoryview]]] = {
    1: ("LZ4", _lz4),
    2: ("ZLIB", _zlib),
    3: ("ZSTD", _zstd),
    4: ("SNAPPY", _snappy),
}
"""By `CompressionType` of PulsarApi.proto, 4.0.8."""


def decompress(kind: int, data: memoryview, size_bytes: int) -> memoryview:
    """What was compressed.

    Args:
        kind: one of COMPRESSIONS.
        data: the compressed bytes.
        size_bytes: how long the result is.

    Raises:
        ValueError: an unknown kind, or the result is not that long.
    """
    if kind not in COMPRESSIONS:
        allowed = ", ".join(f"{k} ({name})" for k, (name, _) in COMPRESSIONS.items())
        raise ValueError(f"compression {kind}; allowed: 0 (none), {allowed}")
    name, undo = COMPRESSIONS[kind]
    if not 0 <= size_bytes <= LARGEST_BYTES:
        raise ValueError(f"{size_bytes} bytes of {name}; allowed: 0 to {LARGEST_BYTES}")
    try:
        whole = undo(data, size_bytes)
    except (zlib.error, cramjam.DecompressionError) as error:
        raise ValueError(f"{name} that cannot be undone") from error
    if len(whole) != size_bytes:
        raise ValueError(f"{len(whole)} bytes or more of {name}; allowed: {size_bytes}")
    return whole.toreadonly()
