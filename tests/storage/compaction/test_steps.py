"""What a round does with records: what stays is right, in both forms."""

from __future__ import annotations

from array import array
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.compaction import steps
from ropeway.storage.compaction.compiled import may_be_compiled
from ropeway.storage.compaction_api import KEYED, ROW, TOMBSTONE
from ropeway.storage.sealed.columns import ROW as SEALED
from ropeway.storage.sealed.columns import Columns, columns_of
from ropeway.storage.sealed.index import Block
from tests.storage.compaction.logs import Describer, record

TEXTS = st.lists(
    st.sampled_from(["a=1@5", "b=2@7", "a=@6", "none", "c=33@1000"]), max_size=20
)


def forms(name: str):
    return [one for one in may_be_compiled.twins[name] if one is not None]


def data_of(texts: list[str]) -> bytes:
    return b"".join(record(text).data for text in texts)


@given(TEXTS, st.binary(max_size=4), st.integers(0, 3), st.sampled_from([-1, 0, 10]))
def test_records_that_stay_are_laid_out(
    texts: list[str], bits: bytes, first: int, keyless_ms: int
) -> None:
    data = data_of(texts)
    rows = Describer().rows(data)
    given_ = (data, rows, 10 + first, bytearray(bits), 10, 100, keyless_ms, 50)
    wanted, kept = [], b""
    for at, text in enumerate(texts):
        size, tag, store_ms, state, digest = ROW.unpack_from(rows, at * ROW.size)
        due = 0
        if not state & KEYED:
            due = 1000 + keyless_ms if keyless_ms >= 0 else 0
        elif state & TOMBSTONE:
            due = 150
        bit = first + at
        if bit < len(bits) * 8 and bits[bit // 8] >> bit % 8 & 1:
            wanted.append((10 + bit, size, tag, store_ms, due, digest))
            kept += record(text).data
    for lay_out in forms("lay_out"):
        found, its_rows = lay_out(*given_)
        assert found == kept
        assert [*SEALED.iter_unpack(its_rows)] == wanted


def test_what_is_due_is_left_out() -> None:
    data = data_of(["none@1", "a=1@1"])
    rows = ROW.pack(10, 0, 1, 0, bytes(16)) + ROW.pack(9, 0, 1, KEYED, b"k" * 16)
    for lay_out in forms("lay_out"):
        found = lay_out(data, rows, 0, bytearray(b"\3"), 0, 100, 99, 0)
        assert found[0] == record("a=1@1").data


def test_rows_of_other_records_are_refused() -> None:
    data = data_of(["a=1"])
    for lay_out in forms("lay_out"):
        for rows in (b"", Describer().rows(data) * 2):
            with pytest.raises(ValueError, match="rows and records do not agree"):
                lay_out(data, rows, 0, bytearray(b"\3"), 0, 1, -1, 1)


@given(st.lists(st.booleans(), min_size=3, max_size=3))
def test_compacted_records_are_carried_over(stays: list[bool]) -> None:
    texts = ["a=1@5", "b=2@7", "a=@6"]
    data = data_of(texts)
    rows = steps.lay_out(
        data, Describer().rows(data), 4, bytearray(b"\7"), 4, 100, -1, 50
    )[1]
    columns = Columns(memoryview(columns_of(rows, True)[0]), 3, 4, sparse=True)
    places = [*accumulate(columns.sizes, initial=0)]
    kept, moved = steps.carry_over(
        Block(memoryview(data), places, columns), bytearray(stays)
    )
    wanted = [at for at in range(3) if stays[at]]
    assert kept == data_of([texts[at] for at in wanted])
    all_rows = [*SEALED.iter_unpack(rows)]
    assert [*SEALED.iter_unpack(moved)] == [all_rows[at] for at in wanted]


def test_bits_beyond_their_end_are_not_set() -> None:
    for mark in forms("mark"):
        bits = bytearray(1)
        mark(array("Q", [0, 1, 3, 9, 1 << 40]), 0, 5, bits, 0)
        assert bits == b"\5"


def test_a_map_that_is_none_and_rows_that_are_cut_are_refused() -> None:
    keyless = ROW.pack(9, 0, 0, 0, bytes(16))
    uneven = [array("Q", bytes(8 * count)) for count in (2, 2, 3)]
    same = [array("Q", bytes(16)) for _ in range(3)]
    none = [array("Q") for _ in range(3)]
    bits = bytearray(1)
    for note in forms("note"):
        for arrays in (uneven, none):
            with pytest.raises(ValueError, match="arrays of a map have one size"):
                note(b"", 0, *arrays, 0, 1, bits, 0)
        for first in (0, 3):
            with pytest.raises(ValueError, match="offsets beyond the bits"):
                note(keyless * 9, first, *same, 0, 1, bits, 2)
        with pytest.raises(ValueError, match="41 bytes; allowed: at least 0 times 40"):
            note(keyless + b"x", 0, *same, 0, 1, bits, 0)
    assert bits == b"\0"
    for staying in forms("staying"):
        for arrays in (uneven, none):
            with pytest.raises(ValueError, match="arrays of a map have one size"):
                staying(bytes(8), bytes(16), *arrays, 0)
        with pytest.raises(ValueError, match="15 bytes; allowed: at least 0 times 16"):
            staying(b"", bytes(15), *same, 0)
        with pytest.raises(ValueError, match="due times and digests do not agree"):
            staying(bytes(16), bytes(16), *same, 0)
        # Columns give their times as numbers.
        assert staying(memoryview(bytes(8)).cast("q"), bytes(16), *same, 0) == b"\1"
    for lay_out in forms("lay_out"):
        with pytest.raises(ValueError, match="39 bytes; allowed: at least 0 times 40"):
            lay_out(b"", keyless[1:], 0, bits, 0, 1, -1, 1)


def test_what_would_be_due_after_the_end_of_time_is_due_then() -> None:
    last = (1 << 63) - 1
    for store_ms in (last, last - 50, last - 49):
        row = ROW.pack(4, 0, store_ms, 0, bytes(16))
        for lay_out in forms("lay_out"):
            _, rows = lay_out(b"abcd", row, 0, bytearray(b"\1"), 0, 100, 50, 50)
            assert SEALED.unpack(rows)[3:5] == (store_ms, last)


@pytest.mark.parametrize("name", ["note", "mark", "staying", "lay_out"])
def test_each_step_has_a_form_in_python(name: str) -> None:
    assert name in may_be_compiled.twins
