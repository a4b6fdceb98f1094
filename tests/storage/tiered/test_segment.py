"""The bytes of segments: golden ones, any damage, newer formats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.tiered import segment as segments
from ropeway.storage.tiered.segment import SegmentError
from tests.storage.tiered.segments import encoded

MADE = encoded(["one coffee", "two"], 7)
DATA = b"".join(MADE.data)

GOLDEN_INDEX = (
    "52575449 bd2c3e54 0100 0000 02000000 0700000000000000 efcdab0000000000 "
    "e803000000000000 e903000000000000 4d00000000000000 3500000000000000 "
    "02000000 01000000 03000000 06000000 6f72646572730000 "
    "02000000 15000000 15000000 19279438 "
    "e803000000000000 e903000000000000 0e000000 07000000 f6ffffff fdffffff "
)
GOLDEN_DATA = (
    "52575444 55093291 0100 0000 02000000 0700000000000000 efcdab0000000000 "
    "0000000e 6f6e6520636f66666565 00000007 74776f"
)


def test_version_1_is_these_bytes():
    assert MADE.index_object.hex() == GOLDEN_INDEX.replace(" ", "")
    assert DATA.hex() == GOLDEN_DATA.replace(" ", "")


def test_what_was_encoded_is_decoded():
    index = segments.decode_index(MADE.index_object)
    assert index.about == MADE.about
    assert (index.starts, index.places) == ([0, 2], [32, 32 + 21])
    assert list(index.times) == [1000, 1001]
    keys = segments.decode_keys(MADE.keys, index.about)
    assert len(keys) == 2


@given(st.integers(0), st.integers(1, 255))
def test_any_byte_that_is_altered_is_noticed(at, change):
    def altered(data):
        place = at % len(data)
        return data[:place] + bytes([data[place] ^ change]) + data[place + 1 :]

    index = segments.decode_index(MADE.index_object)
    with pytest.raises(SegmentError):
        segments.decode_index(altered(MADE.index_object))
    with pytest.raises(SegmentError):
        segments.decode_keys(altered(MADE.keys), index.about)
    with pytest.raises(SegmentError):
        segments.check_data_header(altered(DATA[:32]), index.about)
    with pytest.raises(SegmentError, match="another checksum"):
        segments.open_block(index, 0, altered(DATA[32:]))


INDEX = segments.decode_index(MADE.index_object)


def read_index(data):
    segments.decode_index(data)


def read_keys(data):
    segments.decode_keys(data, INDEX.about)


def read_data_header(data):
    segments.check_data_header(data, INDEX.about)


@pytest.mark.parametrize(
    ("data", "read"), [(MADE.index_object, read_index), (MADE.keys, read_keys)]
)
def test_any_cut_is_noticed(data, read):
    for size in range(len(data)):
        with pytest.raises(SegmentError):
            read(data[:size])
    with pytest.raises(SegmentError, match="block 0 has 20 bytes"):
        segments.open_block(INDEX, 0, DATA[32:-1])


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (MADE.index_object, read_index),
        (MADE.keys, read_keys),
        (DATA, read_data_header),
    ],
)
def test_a_newer_format_is_told_from_damage(data, read):
    newer = data[:8] + (2).to_bytes(2, "little") + data[10:]
    with pytest.raises(SegmentError, match="format 2; this program reads up to 1"):
        read(newer)


def test_objects_of_another_segment_are_noticed():
    other = encoded(["one coffee", "two"], 8)
    index = segments.decode_index(MADE.index_object)
    with pytest.raises(SegmentError, match="of another segment"):
        segments.check_data_header(b"".join(other.data), index.about)
    with pytest.raises(SegmentError, match="of another segment"):
        segments.decode_keys(other.keys, index.about)
