"""No body of zlib becomes more than is allowed, nor takes more memory on the way."""

import tracemalloc
import zlib
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.client.decompression import MAX_BODY_BYTES, inflate


@cache
def bomb(size: int) -> bytes:
    """Something short that becomes long."""
    packing = zlib.compressobj(9)
    block = bytes(1 << 20)
    return b"".join(
        [packing.compress(block) for _ in range(size >> 20)] + [packing.flush()]
    )


@given(st.binary(max_size=200))
def test_what_is_not_too_long_is_whole(body: bytes):
    assert inflate(zlib.compress(body), len(body)) == body
    if body:
        assert inflate(zlib.compress(body), len(body) - 1) is None


@given(st.binary(max_size=60))
def test_garbage_is_nothing_and_no_error(data: bytes):
    found = inflate(data)
    assert found is None or zlib.decompress(data) == found


def test_half_of_it_is_nothing():
    whole = zlib.compress(b"body" * 100)
    for cut in range(len(whole)):
        assert inflate(whole[:cut]) is None


@pytest.mark.slow
@pytest.mark.parametrize("most", [None, 1024])
def test_a_bomb_is_refused_before_it_takes_memory(most: int | None):
    data = bomb(256 << 20)
    assert len(data) < 300_000
    tracemalloc.start()
    try:
        found = inflate(data) if most is None else inflate(data, most)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is None
    # What was not read of the input is copied once, too.
    assert peak < 3 * (most or MAX_BODY_BYTES) + 2 * len(data)


def test_the_longest_body_is_whole():
    assert inflate(bomb(MAX_BODY_BYTES)) == bytes(MAX_BODY_BYTES)
