"""An index finds blocks, records and times; what is not its own is refused."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.sealed.index import Index, decode_index
from ropeway.storage.sealed.layout import SPARSE, SegmentError, Whose, decode_head
from tests.storage.sealed.segments import (
    EXAMPLE,
    EXAMPLES,
    FLAGS,
    WHOSE,
    One,
    made,
    some_records,
)


@given(st.data(), st.sampled_from(FLAGS))
def test_records_come_back_by_block_by_offset_and_by_time(
    data: st.DataObject, flags: int
) -> None:
    records = data.draw(some_records(flags))
    records = [
        one._replace(store_ms=ms)
        for one, ms in zip(records, sorted(r.store_ms for r in records), strict=True)
    ]
    segment = made(records, flags)
    index = decode_index(segment.index)
    found = []
    for number in range(index.blocks):
        place, size = index.data_at(number, number + 1)
        block = index.open_block(number, segment.data[place : place + size])
        _, places, columns = block
        for at in range(columns.records):
            text = bytes(block.data[places[at] + 4 : places[at + 1]]).decode()
            one = One(columns.offset(at), text, columns.tags[at], columns.times[at])
            if flags & SPARSE:
                digest = bytes(columns.digests[16 * at : 16 * at + 16])
                one = one._replace(due_ms=columns.due[at], digest=digest)
            found.append(one)
            assert index.block_at(one.offset) == number
            record = index.starts[number] + at
            assert index.block_of(record) == number
            assert index.time_of(record) == one.store_ms
    assert found == records
    times = [one.store_ms for one in records]
    for time_ms in (0, times[0], times[-1], times[-1] + 1, times[len(times) // 2]):
        before = index.count_before(time_ms, len(times))
        assert before == bisect_left(times, time_ms)
        until = index.count_before(time_ms, len(times), upper=True)
        assert until == bisect_right(times, time_ms)


def test_a_head_alone_says_where_columns_are() -> None:
    segment = EXAMPLES[SPARSE]
    whole, head = decode_index(segment.index), Index(*decode_head(segment.index))
    for number in range(head.blocks):
        place, size = head.columns_at(number, number + 1)
        found = head.columns_of(number, segment.index[place : place + size])
        assert found.rows() == whole.columns(number).rows()
        with pytest.raises(SegmentError, match=f"columns of block {number}, record"):
            head.columns_of(number, segment.index[place + 1 : place + size + 1])
        with pytest.raises(SegmentError, match="not what was written"):
            head.columns_of(number, segment.index[place : place + size - 48])


@pytest.mark.parametrize("flags", FLAGS)
def test_any_byte_of_a_block_that_is_altered_is_noticed(flags: int) -> None:
    segment = EXAMPLES[flags]
    index = decode_index(segment.index)
    assert index.blocks > 1
    for number in range(index.blocks):
        place, size = index.data_at(number, number + 1)
        stored = segment.data[place : place + size]
        for at in range(size):
            wrong = stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :]
            with pytest.raises(SegmentError, match=f"block {number} at .*not what was"):
                index.open_block(number, wrong)
            with pytest.raises(SegmentError, match=f"block {number} has {at} bytes"):
                index.open_block(number, stored[:at])


def test_data_of_another_segment_are_noticed() -> None:
    segment = EXAMPLES[SPARSE]
    other = made([one._replace(text=one.text.upper()) for one in EXAMPLE])
    index = decode_index(segment.index)
    _, size = index.data_at(0, 1)
    with pytest.raises(SegmentError, match="or of another segment"):
        index.open_block(0, other.data[:size])


def test_what_an_index_is_found_by_has_to_be_what_it_says() -> None:
    index = decode_index(EXAMPLES[SPARSE].index)
    index.check_name(WHOSE, 7)
    index.check_name(WHOSE, 7, 14)
    for whose, base, end in [
        (Whose("other", 3, 0xABCDEF), 7, 14),
        (Whose("orders", 4, 0xABCDEF), 7, 14),
        (Whose("orders", 3), 7, None),
        (WHOSE, 8, 14),
        (WHOSE, 7, 13),
    ]:
        with pytest.raises(SegmentError, match="another segment than it does"):
            index.check_name(whose, base, end)
    index.check_index_bytes(len(EXAMPLES[SPARSE].index))
    index.check_data_bytes(len(EXAMPLES[SPARSE].data))
    with pytest.raises(SegmentError, match="its header says"):
        index.check_index_bytes(len(EXAMPLES[SPARSE].index) + 1)
    with pytest.raises(SegmentError, match="written were"):
        index.check_data_bytes(len(EXAMPLES[SPARSE].data) + 1)
