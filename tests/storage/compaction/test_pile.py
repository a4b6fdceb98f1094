"""A file while it grows: its index is the same, however its bytes are taken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.compaction import layout
from ropeway.storage.compaction.layout import ENTRY, GROUP_RECORDS
from ropeway.storage.compaction.pile import Pile


def piled(count: int, taken_after: set[int]) -> tuple[bytes, bytes]:
    pile, data = Pile(), b""
    for number in range(count):
        record = bytes([number % 251]) * (number % 7 + 1)
        fields = (number * 3, pile.place, len(record), 0, number, 0, bytes(16))
        pile.add(record, ENTRY.pack(*fields), number, 900 - number)
        if number in taken_after:
            waiting = pile.take()
            pile.sum_up(waiting)
            data += waiting.data
    waiting = pile.take()
    pile.sum_up(waiting)
    assert (pile.first, pile.last) == (0, (count - 1) * 3)
    return data + waiting.data, pile.index().dump() + bytes(pile.entries)


@given(st.integers(1, 3 * GROUP_RECORDS), st.sets(st.integers(0, 3 * GROUP_RECORDS)))
def test_its_index_is_the_same_however_its_bytes_are_taken(
    count: int, taken_after: set[int]
) -> None:
    assert piled(count, taken_after) == piled(count, set())


def test_its_index_is_one_that_can_be_read() -> None:
    data, raw = piled(GROUP_RECORDS + 1, {3, 70})
    index = layout.load(raw, "x.index")
    assert (index.records, index.data_bytes) == (GROUP_RECORDS + 1, len(data))
    assert list(index.firsts) == [0, GROUP_RECORDS * 3]
    assert (index.newest_ms, index.due_ms) == (GROUP_RECORDS, 900 - GROUP_RECORDS)
