"""Blocks come back as they were, and no larger than was promised."""

import sys

import pytest

from storage.tiered.compression import CODES, complaint, compress, decompress


@pytest.mark.parametrize("code", CODES.values())
def test_what_was_compressed_comes_back(code):
    data = b"one coffee" * 1000
    stored = compress(code, data)
    assert decompress(code, stored, len(data)) == data
    if code:
        assert len(stored) < len(data) // 10


@pytest.mark.parametrize("code", CODES.values())
def test_another_length_than_promised_is_an_error(code):
    stored = compress(code, b"x" * 1000)
    for promised in (999, 1001):
        with pytest.raises(ValueError, match=r"zstd|its index says"):
            decompress(code, stored, promised)


def test_what_is_not_compressed_so_is_an_error():
    with pytest.raises(ValueError, match="zstd"):
        decompress(CODES["zstd"], b"no frame", 10)
    with pytest.raises(ValueError, match=r"compression 9; allowed: \[0, 1\]"):
        decompress(9, b"", 0)


def test_a_missing_library_is_named_with_the_extra(monkeypatch):
    assert complaint("zstd") is None
    monkeypatch.setitem(sys.modules, "cramjam", None)
    assert complaint("none") is None
    assert "pip install ropeway[tier]" in complaint("zstd")
