"""Columns and cuts are what they are of, in Python and compiled."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.replication import ENTRY
from ropeway.storage.sealed import columns
from ropeway.storage.sealed.columns import ROW, Columns
from ropeway.storage.sealed.compiled import may_be_compiled

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
U32 = st.integers(0, (1 << 32) - 1)
U64 = st.integers(0, (1 << 64) - 1)
DIGEST = st.binary(min_size=16, max_size=16)


KINDS = [at for at, form in enumerate(may_be_compiled.twins["cuts_of"]) if form]


@pytest.fixture(scope="module", params=KINDS)
def forms(request: pytest.FixtureRequest) -> Any:
    return lambda name: may_be_compiled.twins[name][request.param]


def test_all_may_be_compiled() -> None:
    assert may_be_compiled.twins.keys() == {
        *("columns_of", "cuts_of", "in_runs", "crc32")
    }
    assert columns.columns_of in may_be_compiled.twins["columns_of"]


@given(rows=st.lists(st.tuples(U32, U32, I32, I64), min_size=1, max_size=20))
def test_columns_of_a_dense_block_have_what_entries_have(
    forms: Any, rows: list[tuple[int, int, int, int]]
) -> None:
    packed = bytearray(b"".join(ENTRY.pack(*one) for one in rows))
    found, least, most, due = forms("columns_of")(packed, False)
    made = Columns(memoryview(found), len(rows), 5, sparse=False)
    assert made.sizes.tolist() == [one[1] for one in rows]
    assert made.tags.tolist() == [one[2] for one in rows]
    assert made.times.tolist() == [one[3] for one in rows]
    assert (least, most) == (min(made.times), max(made.times))
    assert due == 0
    assert [made.offset(at) for at in range(len(rows))] == [
        5 + at for at in range(len(rows))
    ]
    assert [made.at(offset) for offset in (0, 5, 6, 99)] == [0, 0, 1, len(rows)]


@given(
    rows=st.lists(st.tuples(U64, U32, I32, I64, I64, DIGEST), min_size=1, max_size=20)
)
def test_columns_of_a_sparse_block_have_what_rows_have_and_give_them_again(
    forms: Any, rows: list[tuple[int, int, int, int, int, bytes]]
) -> None:
    rows.sort()
    packed = b"".join(ROW.pack(*one) for one in rows)
    found, least, most, due = forms("columns_of")(packed, True)
    made = Columns(memoryview(found), len(rows), rows[0][0], sparse=True)
    assert [made.offset(at) for at in range(len(rows))] == [one[0] for one in rows]
    assert made.sizes.tolist() == [one[1] for one in rows]
    assert made.tags.tolist() == [one[2] for one in rows]
    assert made.times.tolist() == [one[3] for one in rows]
    assert made.due.tolist() == [one[4] for one in rows]
    assert bytes(made.digests) == b"".join(one[5] for one in rows)
    assert (least, most) == (min(made.times), max(made.times))
    assert due == min((one for one in made.due if one), default=0)
    assert made.rows() == packed
    for offset in (rows[0][0], rows[-1][0], rows[-1][0] + 1):
        before = [one for one in rows if one[0] < offset]
        assert made.at(offset) == len(before)


@given(st.lists(DIGEST, min_size=1, max_size=20), st.integers(0, 15))
def test_a_key_is_found_where_its_digest_is_and_nowhere_between(
    digests: list[bytes], shift: int
) -> None:
    rows = [ROW.pack(at, 9, 0, 0, 0, one) for at, one in enumerate(digests)]
    found, *_ = columns.columns_of(b"".join(rows), True)
    made = Columns(memoryview(found), len(digests), 0, sparse=True)
    for one in digests:
        assert made.find(one) == digests.index(one)
    between = b"".join(digests)[shift : shift + 16].ljust(16, b"\0")
    assert made.find(between) == (
        digests.index(between) if between in digests else None
    )


@given(
    sizes=st.lists(st.integers(0, 50), max_size=40),
    most=st.integers(1, 60),
    records=st.integers(1, 9),
    sparse=st.booleans(),
)
def test_blocks_are_as_large_as_they_may_be(
    forms: Any, sizes: list[int], most: int, records: int, sparse: bool
) -> None:
    rows = [
        ROW.pack(at, size, 0, 0, 0, bytes(16)) if sparse else ENTRY.pack(9, size, 0, 0)
        for at, size in enumerate(sizes)
    ]
    cuts = forms("cuts_of")(b"".join(rows), sparse, records, most)
    at = 0
    for count, size in cuts:
        assert size == sum(sizes[at : at + count])
        assert count == 1 or size <= most
        assert count <= records
        at += count
        assert at == len(sizes) or size + sizes[at] > most or count == records
    assert at == len(sizes)


@pytest.mark.parametrize(
    ("name", "given", "wrong"),
    [
        ("columns_of", (b"", False), "0 bytes; allowed: at least 1 times 20"),
        ("columns_of", (bytes(24), False), "24 bytes; allowed: at least 1 times 20"),
        ("columns_of", (bytes(20), True), "20 bytes; allowed: at least 1 times 48"),
        ("cuts_of", (bytes(5), False, 9, 9), "5 bytes; allowed: at least 0 times 20"),
        ("cuts_of", (bytes(5), True, 9, 9), "5 bytes; allowed: at least 0 times 48"),
    ],
)
def test_rows_have_to_be_whole(
    forms: Any, name: str, given: tuple[Any, ...], wrong: str
) -> None:
    with pytest.raises(ValueError, match=wrong):
        forms(name)(*given)


@given(data=st.binary(max_size=300), before=U32)
def test_checksums_are_zlibs(forms: Any, data: bytes, before: int) -> None:
    python = may_be_compiled.twins["crc32"][0]
    assert forms("crc32")(memoryview(data), before) == python(data, before)


def test_a_record_has_as_many_bytes_in_columns_as_the_format_says() -> None:
    assert (columns.width_of(sparse=False), columns.width_of(sparse=True)) == (16, 48)
    assert columns.row_bytes_of(sparse=False) == struct.calcsize("<IIiq")
