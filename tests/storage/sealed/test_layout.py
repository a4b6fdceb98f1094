"""The bytes of segments: golden ones, any damage, newer formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.sealed import layout
from ropeway.storage.sealed.index import decode_index
from ropeway.storage.sealed.layout import (
    HEADER,
    SPARSE,
    NewerSegmentError,
    SegmentError,
    Whose,
)
from tests.storage.sealed.segments import EXAMPLES, FLAGS, One, made
from tests.storage.tiered.segments import encoded

if TYPE_CHECKING:
    from collections.abc import Callable

MADE = encoded(["one coffee", "two"], 7)

GOLDEN_INDEX = (
    "52575449 37a36661 0200 0000 02000000 0700000000000000 0900000000000000 "
    "efcdab0000000000 e803000000000000 e903000000000000 4d00000000000000 "
    "0000000000000000 1500000000000000 00000000 02000000 01000000 0300 0600 "
    "6f72646572730000 "
    "0700000000000000 02000000 15000000 15000000 19279438 44146e59 00000000 "
    "e803000000000000 e903000000000000 0e000000 07000000 f6ffffff fdffffff "
)
GOLDEN_DATA = "0000000e 6f6e6520636f66666565 00000007 74776f"
SPARSE_ONE = made([One(5, "abc", -1, 1000, 9, b"d" * 16)], SPARSE)
GOLDEN_SPARSE = (
    "52575449 75b7c122 0200 0100 01000000 0500000000000000 0600000000000000 "
    "efcdab0000000000 e803000000000000 e803000000000000 0500000000000000 "
    "0900000000000000 0700000000000000 00000000 00000000 01000000 0300 0600 "
    "6f72646572730000 "
    "0500000000000000 01000000 07000000 07000000 177fdeca 897406a5 00000000 "
    "e803000000000000 07000000 ffffffff 0500000000000000 0900000000000000 "
    "64646464646464646464646464646464 "
)


def test_version_2_is_these_bytes() -> None:
    assert MADE.index_object == bytes.fromhex(GOLDEN_INDEX)
    assert b"".join(MADE.data) == bytes.fromhex(GOLDEN_DATA)
    assert SPARSE_ONE.index == bytes.fromhex(GOLDEN_SPARSE)


def test_what_was_encoded_is_decoded() -> None:
    about, blocks = layout.decode_head(MADE.index_object)
    assert about == MADE.about
    assert about.whose == Whose("orders", 3, 0xABCDEF)
    assert len(blocks) == layout.BLOCK.size
    assert layout.wanted_bytes(MADE.index_object) == HEADER.size + 8 + len(blocks)
    assert layout.wanted_bytes(b"") == HEADER.size
    assert MADE.keys is not None
    assert len(layout.decode_keys(MADE.keys, about)) == 2


def altered(data: bytes, at: int, change: int) -> bytes:
    place = at % len(data)
    return data[:place] + bytes([data[place] ^ change]) + data[place + 1 :]


@given(st.integers(0), st.integers(1, 255), st.sampled_from(FLAGS))
def test_any_byte_that_is_altered_is_noticed(at: int, change: int, flags: int) -> None:
    assert MADE.keys is not None
    with pytest.raises(SegmentError):
        decode_index(altered(EXAMPLES[flags].index, at, change))
    with pytest.raises(SegmentError):
        layout.decode_keys(altered(MADE.keys, at, change), MADE.about)


def test_each_byte_of_a_head_counts_also_without_the_columns() -> None:
    size = layout.wanted_bytes(MADE.index_object)
    head = MADE.index_object[:size]
    for at in range(size):
        with pytest.raises(SegmentError):
            layout.decode_head(altered(head, at, 1))
        with pytest.raises(SegmentError):
            layout.decode_head(head[:at])


def read_index(data: bytes) -> None:
    decode_index(data)


def read_keys(data: bytes) -> None:
    layout.decode_keys(data, MADE.about)


PARTS = [
    *((EXAMPLES[flags].index, read_index, layout.VERSION) for flags in FLAGS),
    (MADE.keys, read_keys, layout.KEYS_VERSION),
]


@pytest.mark.parametrize(("data", "read", "version"), PARTS)
def test_any_cut_is_noticed(
    data: bytes, read: Callable[[bytes], None], version: int
) -> None:
    del version
    for size in range(len(data)):
        with pytest.raises(SegmentError):
            read(data[:size])
    with pytest.raises(SegmentError):
        read(data + b"\0")


@pytest.mark.parametrize(("data", "read", "version"), PARTS)
def test_a_newer_format_is_told_from_damage(
    data: bytes, read: Callable[[bytes], None], version: int
) -> None:
    newer = data[:8] + (version + 1).to_bytes(2, "little") + data[10:]
    wanted = f"format {version + 1}; this program reads up to {version}"
    with pytest.raises(NewerSegmentError, match=wanted):
        read(newer)


def test_a_flag_that_nobody_knows_is_refused() -> None:
    data = layout.sealed(altered(MADE.index_object, 10, 8)[:-32])
    with pytest.raises(SegmentError, match="flags 8; allowed: 0 to 3"):
        layout.decode_head(data)


def test_keys_of_another_segment_are_noticed() -> None:
    other = encoded(["one coffee", "two"], 8)
    assert other.keys is not None
    with pytest.raises(SegmentError, match="of another segment"):
        layout.decode_keys(other.keys, MADE.about)
