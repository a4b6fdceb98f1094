"""Blocks come back as they were, and no larger than was promised."""

import sys
import tracemalloc

import pytest

from ropeway.storage.sealed.compression import (
    LARGEST_BYTES,
    complaint,
    compress,
    decompress,
)


def test_what_was_compressed_comes_back():
    data = b"one coffee" * 1000
    stored = compress(data)
    assert decompress(stored, len(data)) == data
    assert len(stored) < len(data) // 10


def test_another_length_than_promised_is_an_error():
    stored = compress(b"x" * 1000)
    for promised in (999, 1001):
        with pytest.raises(ValueError, match=r"zstd|its index says"):
            decompress(stored, promised)


def test_what_is_not_compressed_so_is_an_error():
    with pytest.raises(ValueError, match="zstd"):
        decompress(b"no frame", 10)


def test_a_missing_library_is_named_with_the_extra(monkeypatch):
    assert complaint("zstd") is None
    monkeypatch.setitem(sys.modules, "cramjam", None)
    assert complaint("none") is None
    assert "pip install ropeway[tier]" in complaint("zstd")


def test_no_memory_is_taken_for_a_block_that_nobody_makes():
    bomb = compress(bytes(8 * LARGEST_BYTES))
    tracemalloc.start()
    try:
        for promised in (8 * LARGEST_BYTES, LARGEST_BYTES + 1, (1 << 32) - 1):
            with pytest.raises(ValueError, match=rf"block of {promised} .*: 16777216"):
                decompress(bomb, promised)
        with pytest.raises(ValueError, match="zstd"):
            decompress(bomb, LARGEST_BYTES)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * LARGEST_BYTES
    whole = bytes(LARGEST_BYTES)
    assert decompress(compress(whole), LARGEST_BYTES) == whole
