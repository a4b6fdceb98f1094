"""A segment while it grows is the same however it is fed; several become one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.sealed.index import decode_index
from ropeway.storage.sealed.layout import SPARSE
from ropeway.storage.sealed.writer import BlockLimits, SegmentWriter, join
from tests.storage.sealed.segments import (
    FLAGS,
    LIMITS,
    WHOSE,
    One,
    made,
    some_records,
)


@given(
    st.data(),
    st.sampled_from(FLAGS),
    st.frozensets(st.integers(0, 20)),
    st.integers(1, 7),
)
def test_it_is_the_same_however_it_is_fed_and_cut(
    data: st.DataObject, flags: int, cut_after: frozenset[int], at_once: int
) -> None:
    records = data.draw(some_records(flags))
    whole = made(records, flags)
    assert made(records, flags, LIMITS, cut_after, at_once) == whole
    about = whole.about
    assert about == decode_index(whole.index).about
    assert (about.records, about.data_bytes) == (len(records), len(whole.data))
    assert (about.base_offset, about.end) == (
        records[0].offset,
        records[-1].offset + 1,
    )
    times = [one.store_ms for one in records]
    assert (about.least_ms, about.most_ms, about.written_ms) == (
        *(min(times), max(times)),
        5,
    )
    assert about.due_ms == min((r.due_ms for r in records if r.due_ms), default=0)


@given(st.data(), st.sampled_from(FLAGS), st.integers(1, 19))
def test_blocks_of_several_become_one_segment_as_they_are(
    data: st.DataObject, flags: int, at: int
) -> None:
    records = data.draw(some_records(flags))
    parts = [part for part in (records[:at], records[at:]) if part]
    segments = [made(part, flags) for part in parts]
    about, raw = join([decode_index(one.index) for one in segments], 4)
    index = decode_index(raw)
    assert index.about == about
    assert (about.records, about.keys) == (len(records), 4)
    assert (about.base_offset, about.end) == (
        records[0].offset,
        records[-1].offset + 1,
    )
    stored = b"".join(one.data for one in segments)
    found = []
    for number in range(index.blocks):
        place, size = index.data_at(number, number + 1)
        block = index.open_block(number, stored[place : place + size])
        found += [block.columns.offset(at) for at in range(block.columns.records)]
    assert found == [one.offset for one in records]


def test_it_says_what_waits_and_what_is_in_blocks() -> None:
    writer = SegmentWriter(WHOSE, SPARSE, BlockLimits(2, 1000))
    assert writer.is_empty
    for number in range(5):
        one = One(number, "abc")
        writer.add(one.data, one.row(sparse=True))
    assert (writer.waiting_bytes, writer.data_bytes, writer.records) == (35, 0, 0)
    assert not writer.is_empty
    # The last one of a full block waits, too: a cut does not know what comes.
    assert b"".join(writer.cut()) == One(0, "abc").data * 4
    assert (writer.waiting_bytes, writer.data_bytes, writer.records) == (7, 28, 4)
    assert writer.cut() == []
    with pytest.raises(AssertionError):
        writer.seal()
    assert b"".join(writer.cut(everything=True)) == One(0, "abc").data
    about, _ = writer.seal()
    assert about.written_ms == about.most_ms == 1000
