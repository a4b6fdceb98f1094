"""Payloads that native producers compressed; those they say are something else."""

import tracemalloc
import zlib
from functools import cache

import cramjam
import pytest

from ropeway.storage.pulsar.compression import LARGEST_BYTES, decompress

TEXT = b"compressed " * 20
BY_KIND = {
    1: bytes(cramjam.lz4.compress_block(TEXT, store_size=False)),
    2: zlib.compress(TEXT),
    3: bytes(cramjam.zstd.compress(TEXT)),
    4: bytes(cramjam.snappy.compress_raw(TEXT)),
}
BOMB_OF = {
    1: lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
    2: zlib.compress,
    3: lambda data: bytes(cramjam.zstd.compress(data)),
    4: lambda data: bytes(cramjam.snappy.compress_raw(data)),
}


@cache
def bomb(kind: int) -> bytes:
    """What says that it is small; made when it is asked for, which takes long."""
    return BOMB_OF[kind](bytes(4 * LARGEST_BYTES))


@pytest.mark.parametrize("kind", BY_KIND)
def test_every_compression_is_undone(kind):
    assert decompress(kind, memoryview(BY_KIND[kind]), len(TEXT)) == TEXT


@pytest.mark.parametrize("kind", BY_KIND)
@pytest.mark.parametrize("size", [0, 1, len(TEXT) - 1, len(TEXT) + 1])
def test_a_payload_of_another_size_is_refused(kind, size):
    with pytest.raises(ValueError, match=r"that cannot be undone|; allowed: \d+$"):
        decompress(kind, memoryview(BY_KIND[kind]), size)


@pytest.mark.parametrize("kind", BY_KIND)
def test_garbage_is_refused(kind):
    with pytest.raises(ValueError, match=r"that cannot be undone|; allowed: \d+$"):
        decompress(kind, memoryview(b"\xff\xfe\xfd garbage"), 100)


def test_an_unknown_compression_is_named_with_those_that_are_known():
    with pytest.raises(ValueError, match=r"compression 9; allowed: 0 \(none\), 1"):
        decompress(9, memoryview(b""), 0)


@pytest.mark.parametrize("size", [-1, LARGEST_BYTES + 1])
def test_no_memory_is_taken_for_a_size_that_nothing_has(size):
    with pytest.raises(ValueError, match=rf"{size} bytes of ZSTD; allowed: 0 to"):
        decompress(3, memoryview(BY_KIND[3]), size)


@pytest.mark.parametrize("kind", BOMB_OF)
def test_a_bomb_takes_no_more_memory_than_its_entry_may_have(kind):
    packed = memoryview(bomb(kind))
    tracemalloc.start()
    try:
        for said in (1 << 10, LARGEST_BYTES):
            with pytest.raises(ValueError, match=r"that cannot be undone|; allowed: "):
                decompress(kind, packed, said)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # zlib grows what it makes by doubling.
    assert peak < 2.5 * LARGEST_BYTES


@pytest.mark.parametrize("kind", BOMB_OF)
def test_the_largest_payload_is_whole_and_not_copied(kind):
    whole = bytes(LARGEST_BYTES)
    packed = BOMB_OF[kind](whole)
    tracemalloc.start()
    try:
        assert len(decompress(kind, memoryview(packed), LARGEST_BYTES)) == LARGEST_BYTES
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # zlib grows what it makes by doubling.
    assert peak < 2.5 * LARGEST_BYTES
