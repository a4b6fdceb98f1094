"""Arrays hold what single messages hold, and garbage is told apart."""

from __future__ import annotations

import random
import zlib

import pytest

from ropeway.client.columns import read_columns
from ropeway.client.errors import BadResponseError
from ropeway.gateway.wire.message import COMPRESSED_FLAG
from ropeway.spark.frames import read_frames
from tests.ropeway.client.test_columns import stored

SHAPES = (
    stored(0, topic="t" * 200),
    stored(1, born_host=("::1", 1), store_host=("::1", 2)),
    stored(2, born_host=("::1", 1)),
    stored(3, body=zlib.compress(b"small"), sys_flag=COMPRESSED_FLAG | 0x300),
    stored(4, body=b"lz4 it says", sys_flag=COMPRESSED_FLAG | 0x100),
    stored(5, properties=""),
    stored(6, body=b"x" * 100_000, store_host=("::1", 1)),
)
"""Messages of every layout."""


def lists(found) -> list[list]:
    return [list(one.tolist()) for one in found]


@pytest.mark.parametrize(("begin", "end"), [(0, 7), (2, 5), (6, 99), (0, 0), (7, 9)])
def test_all_shapes_are_read_as_one_by_one(begin: int, end: int) -> None:
    data = b"".join(SHAPES)
    expected = [list(one) for one in read_columns(data, begin, end)]
    assert lists(read_frames(data, begin, end)) == expected
    assert lists(read_frames(memoryview(data), begin, end)) == expected


def test_nothing_is_no_messages() -> None:
    assert lists(read_frames(b"", 0, 9)) == [[], [], [], [], []]


@pytest.mark.parametrize("shape", SHAPES[:6])
def test_any_cut_is_an_error(shape: bytes) -> None:
    data = stored(9) + shape
    for end in range(1, len(data)):
        if end != len(stored(9)):
            with pytest.raises(BadResponseError):
                read_frames(data[:end], 0, 10)


def test_garbage_is_an_error_or_is_read_and_nothing_else() -> None:
    chance = random.Random(5)
    data = b"".join(SHAPES[:6])
    for _ in range(2000):
        broken = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            broken[chance.randrange(len(data))] = chance.randrange(256)
        try:
            found = read_frames(bytes(broken), 0, 1 << 60)
        except BadResponseError:
            continue
        assert len({len(one) for one in found}) == 1
