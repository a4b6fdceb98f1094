"""Columns, cuts and runs are what they are of, in Python and compiled."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropeway.storage.replication import ENTRY
from ropeway.storage.tiered import columns
from ropeway.storage.tiered.compiled import may_be_compiled

I32 = st.integers(-(1 << 31), (1 << 31) - 1)
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
U32 = st.integers(0, (1 << 32) - 1)
U64 = st.integers(0, (1 << 64) - 1)


KINDS = [at for at, form in enumerate(may_be_compiled.twins["in_runs"]) if form]


@pytest.fixture(scope="module", params=KINDS)
def forms(request: pytest.FixtureRequest) -> Any:
    return lambda name: may_be_compiled.twins[name][request.param]


def test_all_may_be_compiled() -> None:
    assert may_be_compiled.twins.keys() == {
        *("columns_of", "cuts_of", "in_runs", "crc32")
    }
    assert columns.columns_of in may_be_compiled.twins["columns_of"]


@given(entries=st.lists(st.tuples(U32, U32, I32, I64), min_size=1, max_size=20))
def test_columns_have_what_entries_have(
    forms: Any, entries: list[tuple[int, int, int, int]]
) -> None:
    packed = bytearray(b"".join(ENTRY.pack(*one) for one in entries))
    times, sizes, tags, least, most = forms("columns_of")(packed)
    count = len(entries)
    assert struct.unpack(f"<{count}q", times) == tuple(one[3] for one in entries)
    assert struct.unpack(f"<{count}I", sizes) == tuple(one[1] for one in entries)
    assert struct.unpack(f"<{count}i", tags) == tuple(one[2] for one in entries)
    assert (least, most) == (min(e[3] for e in entries), max(e[3] for e in entries))


@given(sizes=st.lists(st.integers(0, 50), max_size=40), most=st.integers(1, 60))
def test_blocks_are_as_large_as_they_may_be(
    forms: Any, sizes: list[int], most: int
) -> None:
    cuts = forms("cuts_of")(struct.pack(f"<{len(sizes)}I", *sizes), most)
    at = 0
    for records, size in cuts:
        assert size == sum(sizes[at : at + records])
        assert records == 1 or size <= most
        at += records
        assert at == len(sizes) or size + sizes[at] > most
    assert at == len(sizes)


@given(
    keys=st.lists(U64, max_size=40),
    base=st.integers(0, 1 << 52),
    a_run=st.integers(1, 9),
)
def test_keys_stand_in_runs_that_are_sorted_each(
    forms: Any, keys: list[int], base: int, a_run: int
) -> None:
    packed = forms("in_runs")(struct.pack(f"<{len(keys)}Q", *keys), base, a_run)
    wanted = [key >> 32 << 32 | (key - base) & 0xFFFFFFFF for key in keys]
    runs = [sorted(wanted[low : low + a_run]) for low in range(0, len(keys), a_run)]
    assert struct.unpack(f"<{len(keys)}Q", packed) == tuple(
        key for run in runs for key in run
    )


@pytest.mark.parametrize(
    ("name", "given", "wrong"),
    [
        ("columns_of", (b"",), "0 bytes; allowed: at least 1 times 20"),
        ("columns_of", (bytes(24),), "24 bytes; allowed: at least 1 times 20"),
        ("cuts_of", (bytes(5), 9), "5 bytes; allowed: at least 0 times 4"),
        ("in_runs", (bytes(9), 0, 1), "9 bytes; allowed: at least 0 times 8"),
        ("in_runs", (bytes(8), 0, 0), "a run has at least one key"),
        ("in_runs", (bytes(8), 0, -1), "a run has at least one key"),
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
